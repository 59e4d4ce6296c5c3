/* voxel_pooling_forward as a program of its own, in plain C, for `mluops run CASES --impl "exec:./voxel_pooling {dir}"`.
 *
 *     cc -O2 -o voxel_pooling voxel_pooling.c
 *
 * The folder holds case.txt (the operator, then its parameters), tensors.txt (a line per tensor) and a raw file per
 * tensor; outputs are overwritten in place. Exit code 0 is SUCCESS, 64 + n the operator status n. See docs/exec.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, BAD_PARAM = 3, NOT_SUPPORTED = 7, STATUS_BASE = 64 };
enum { MAX_RANK = 8, MAX_PARAMETERS = 32, MAX_VALUES = 64 };

typedef struct {
    char name[64];
    int count;
    double values[MAX_VALUES]; /* integers up to 2^53 are exact */
} Parameter;

typedef struct {
    char role[16], name[64], dtype[32], layout[16], file[64];
    int rank;
    long long dims[MAX_RANK], strides[MAX_RANK];
    void *data;
} Tensor;

static const char *folder;
static Parameter parameters[MAX_PARAMETERS];
static int parameter_count;

static void finish(int status) { exit(status ? STATUS_BASE + status : 0); }

static void require(int holds, int status) {
    if (!holds) finish(status);
}

/* What is wrong with the files is no status of the operator. */
static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "voxel_pooling: %s\n", what);
        exit(1);
    }
}

static FILE *open_file(const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    check(file != NULL, path);
    return file;
}

static long long elements(const Tensor *tensor) {
    long long count = 1;
    for (int axis = 0; axis < tensor->rank; axis++) count *= tensor->dims[axis];
    return count;
}

/* case.txt: the operator; then lines "name count value value ...". */
static void read_case(const char *operator) {
    char name[128];
    Parameter parameter;
    int items;
    FILE *file = open_file("case.txt", "r");
    check(fscanf(file, "%127s", name) == 1 && strcmp(name, operator) == 0, "another operator");
    while ((items = fscanf(file, "%63s %d", parameter.name, &parameter.count)) == 2) {
        check(parameter_count < MAX_PARAMETERS && parameter.count <= MAX_VALUES, "case.txt has too many numbers");
        for (int i = 0; i < parameter.count; i++)
            check(fscanf(file, "%lf", &parameter.values[i]) == 1, "case.txt can't be read");
        parameters[parameter_count++] = parameter;
    }
    check(items == EOF, "case.txt can't be read");
    fclose(file);
}

/* The value of a parameter at this position, 0 where it has one value. */
static double value_of(const char *name, int position) {
    for (int k = 0; k < parameter_count; k++)
        if (strcmp(parameters[k].name, name) == 0 && position < parameters[k].count)
            return parameters[k].values[position];
    check(0, name); /* missing */
    return 0;
}

/* tensors.txt: lines "role name dtype layout rank dims... strides... file", in the operator's order. */
static void read_tensors(Tensor tensors[], int count) {
    FILE *file = open_file("tensors.txt", "r");
    for (int k = 0; k < count; k++) {
        Tensor *t = &tensors[k];
        int good = fscanf(file, "%15s %63s %31s %15s %d", t->role, t->name, t->dtype, t->layout, &t->rank) == 5;
        check(good && t->rank <= MAX_RANK, "tensors.txt can't be read");
        for (int i = 0; i < t->rank; i++) check(fscanf(file, "%lld", &t->dims[i]) == 1, "dims can't be read");
        for (int i = 0; i < t->rank; i++) check(fscanf(file, "%lld", &t->strides[i]) == 1, "strides can't be read");
        check(fscanf(file, "%63s", t->file) == 1, "file name can't be read");
    }
    fclose(file);
}

static void load(Tensor *tensor, size_t width) {
    size_t count = (size_t)elements(tensor);
    FILE *file = open_file(tensor->file, "rb");
    tensor->data = malloc(count * width);
    check(tensor->data && fread(tensor->data, width, count, file) == count, tensor->file);
    fclose(file);
}

static void store(const Tensor *tensor, size_t width) {
    size_t count = (size_t)elements(tensor);
    FILE *file = open_file(tensor->file, "wb");
    check(fwrite(tensor->data, width, count, file) == count && fclose(file) == 0, tensor->file);
}

/* The layout is NULL where any is right: ARRAY in the table Tensors of the operator's page. */
static void expect(const Tensor *tensor, const char *dtype, const char *layout, int rank, const long long dims[]) {
    require(strcmp(tensor->dtype, dtype) == 0 && tensor->rank == rank, BAD_PARAM); /* "null": no descriptor */
    require(layout == NULL || strcmp(tensor->layout, layout) == 0, BAD_PARAM);
    for (int axis = 0; axis < rank; axis++) require(tensor->dims[axis] == dims[axis], BAD_PARAM);
}

static int dense(const Tensor *tensor) {
    long long stride = 1;
    for (int axis = tensor->rank - 1; axis >= 0; stride *= tensor->dims[axis--])
        if (tensor->dims[axis] != 1 && tensor->strides[axis] != stride) return 0;
    return 1;
}

int main(int argc, char **argv) {
    static const char *const sizes[] = {"batch_size",  "num_points",  "num_channels",
                                        "num_voxel_x", "num_voxel_y", "num_voxel_z"};
    long long given[6];
    static Tensor tensors[4];
    check(argc == 2, "usage: voxel_pooling DIR");
    folder = argv[1];
    read_case("voxel_pooling_forward");
    read_tensors(tensors, 4);
    Tensor *geom = &tensors[0], *features = &tensors[1], *pooled = &tensors[2], *memo = &tensors[3];

    for (int k = 0; k < 6; k++) require((given[k] = (long long)value_of(sizes[k], 0)) > 0, BAD_PARAM);
    long long B = given[0], N = given[1], C = given[2], X = given[3], Y = given[4], Z = given[5];
    expect(geom, "int32", NULL, 3, (long long[]){B, N, 3});
    expect(features, "float", NULL, 3, (long long[]){B, N, C});
    expect(pooled, "float", NULL, 4, (long long[]){B, Y, X, C});
    expect(memo, "int32", NULL, 3, (long long[]){B, N, 3});
    for (int k = 0; k < 4; k++) require(dense(&tensors[k]), NOT_SUPPORTED);
    for (int k = 0; k < 4; k++) require(elements(&tensors[k]) < 1LL << 31, NOT_SUPPORTED);
    for (int k = 0; k < 4; k++) require(strcmp(tensors[k].file, "-") != 0, BAD_PARAM); /* a null pointer */

    for (int k = 0; k < 4; k++) load(&tensors[k], 4);
    const int *point = geom->data;
    const float *feature = features->data;
    float *sum = pooled->data;
    int *place = memo->data; /* comes filled with -1, which stays where a point is outside */
    memset(sum, 0, (size_t)elements(pooled) * sizeof *sum);
    for (long long n = 0; n < B * N; n++, point += 3, place += 3, feature += C) {
        long long x = point[0], y = point[1], z = point[2], b = n / N;
        if (x < 0 || x >= X || y < 0 || y >= Y || z < 0 || z >= Z) continue;
        place[0] = (int)b, place[1] = (int)y, place[2] = (int)x;
        float *cell = sum + ((b * Y + y) * X + x) * C;
        for (long long c = 0; c < C; c++) cell[c] += feature[c];
    }
    store(pooled, 4);
    store(memo, 4);
    finish(SUCCESS);
}
