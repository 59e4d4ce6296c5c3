/* A stand-in for libmluops.so: the same symbols, the operators computed when the queue is waited for.
 *
 * It checks and answers as the vendor's public host code does (docs/vendor.md), with what that code leaves unchecked and
 * its known defects. Compiled with -DSTANDIN_NARROW it lacks the descriptor setters that take int64_t.
 *
 * STANDIN_STRICT=1: it checks everything, stores num_act_out with sub_m, and has none of the defects. STANDIN_STATUS=n:
 * every operator returns the status n. STANDIN_FAULT: create (no handle), wrong (the first element of the last output is
 * off), overrun (a byte behind the last output), input (the first input is written to), silent (nothing is computed),
 * crash (SIGSEGV at the call), nostatus (returns 99).
 */
#include "standin.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, NOT_INITIALIZED, ALLOC_FAILED, BAD_PARAM, INTERNAL_ERROR, ARCH_MISMATCH, EXECUTION_FAILED, NOT_SUPPORTED };
enum { HALF = 1, FLOAT = 2, INT32 = 6, NCHW = 0, NHWC = 1, ARRAY = 4, ANY = -1, MAX_RANK = 8, MAX_TENSORS = 4 };
typedef long long Int;

typedef struct {
    Queue *queue;
} Handle;
typedef struct {
    int layout, dtype, rank, strided;
    Int dims[MAX_RANK];
} Desc;
typedef struct {
    int dimnb, batch, pad[3], stride[3], dilation[3], in[3], filter[3], out[3], sub_m, num_act_out, set;
} Conv;
typedef struct {
    Desc *desc;
    void *data;
} Tensor;

/* A call that passed its checks and waits in the queue; the outputs are the last tensors. */
typedef struct Work {
    void (*compute)(struct Work *);
    Tensor t[MAX_TENSORS];
    int count, outputs;
    Int n[8];
    Conv *conv;
    Int *workspace;
    Desc copies[MAX_TENSORS];
} Work;

static int strict(void) {
    const char *set = getenv("STANDIN_STRICT");
    return set && *set;
}

const char *mluOpGetErrorString(int status) {
    static const char *const names[] = {"SUCCESS", "NOT_INITIALIZED", "ALLOC_FAILED", "BAD_PARAM", "INTERNAL_ERROR",
                                        "ARCH_MISMATCH", "EXECUTION_FAILED", "NOT_SUPPORTED", "NUMERICAL_OVERFLOW"};
    return status >= 0 && status < 9 ? names[status] : NULL;
}

/* ---- handle and descriptors ---- */

int mluOpCreate(Handle **handle) {
    if (!handle) return NOT_INITIALIZED;
    if (standinFault("create")) return ARCH_MISMATCH;
    *handle = calloc(1, sizeof **handle);
    return SUCCESS;
}

int mluOpDestroy(Handle *handle) {
    free(handle);
    return handle ? SUCCESS : BAD_PARAM;
}

int mluOpSetQueue(Handle *handle, Queue *queue) {
    if (!handle || !queue) return BAD_PARAM;
    handle->queue = queue;
    return SUCCESS;
}

int mluOpCreateTensorDescriptor(Desc **desc) {
    if (!desc) return BAD_PARAM;
    *desc = calloc(1, sizeof **desc);
    return SUCCESS;
}

int mluOpDestroyTensorDescriptor(Desc *desc) {
    free(desc);
    return desc ? SUCCESS : BAD_PARAM;
}

static int set_descriptor(Desc *desc, int layout, int dtype, int rank, const int64_t dims[], const int64_t strides[]) {
    Int dense = 1;
    if (!desc || !dims || rank < 1 || rank > MAX_RANK || layout < 0 || layout > 10 || dtype < 1 || dtype > 17)
        return BAD_PARAM;
    *desc = (Desc){layout, dtype, rank, 0, {0}};
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return BAD_PARAM;
        desc->dims[i] = dims[i];
    }
    for (int i = rank - 1; strides && i >= 0; dense *= dims[i--])
        if (dims[i] != 1 && strides[i] != dense) desc->strided = 1;
    return SUCCESS;
}

static void widen(int64_t wide[], const int narrow[], int rank) {
    for (int i = 0; i < rank && i < MAX_RANK; i++) wide[i] = narrow[i];
}

int mluOpSetTensorDescriptor(Desc *desc, int layout, int dtype, int rank, const int dims[]) {
    int64_t wide[MAX_RANK];
    if (!dims) return BAD_PARAM;
    widen(wide, dims, rank);
    return set_descriptor(desc, layout, dtype, rank, wide, NULL);
}

int mluOpSetTensorDescriptorEx(Desc *desc, int layout, int dtype, int rank, const int dims[], const int strides[]) {
    int64_t wide[MAX_RANK], wide_strides[MAX_RANK];
    if (!dims || !strides) return BAD_PARAM;
    widen(wide, dims, rank);
    widen(wide_strides, strides, rank);
    return set_descriptor(desc, layout, dtype, rank, wide, wide_strides);
}

#ifndef STANDIN_NARROW
int mluOpSetTensorDescriptor_v2(Desc *desc, int layout, int dtype, int rank, const int64_t dims[]) {
    return set_descriptor(desc, layout, dtype, rank, dims, NULL);
}

int mluOpSetTensorDescriptorEx_v2(Desc *desc, int layout, int dtype, int rank, const int64_t dims[],
                                  const int64_t strides[]) {
    return strides ? set_descriptor(desc, layout, dtype, rank, dims, strides) : BAD_PARAM;
}
#endif

int mluOpCreateSparseConvolutionDescriptor(Conv **conv) {
    if (!conv) return NOT_INITIALIZED;
    *conv = calloc(1, sizeof **conv);
    return SUCCESS;
}

int mluOpDestroySparseConvolutionDescriptor(Conv *conv) {
    free(conv);
    return conv ? SUCCESS : EXECUTION_FAILED;
}

int mluOpSetSparseConvolutionDescriptor(Conv *conv, int dimnb, int batch, const int pad[], const int stride[],
                                        const int dilation[], const int in[], const int filter[], const int out[],
                                        int sub_m, int transpose, int inverse) {
    if (!conv || !pad || !stride || !dilation || !in || !filter || !out) return BAD_PARAM;
    if (dimnb != 5 || batch <= 0 || transpose || inverse) return BAD_PARAM;
    for (int i = 0; i < 3; i++)
        if (in[i] < 1 || filter[i] < 1 || out[i] < 1) return BAD_PARAM;
    *conv = (Conv){.dimnb = dimnb, .batch = batch, .sub_m = sub_m, .set = 1};
    memcpy(conv->pad, pad, sizeof conv->pad);
    memcpy(conv->stride, stride, sizeof conv->stride);
    memcpy(conv->dilation, dilation, sizeof conv->dilation);
    memcpy(conv->in, in, sizeof conv->in);
    memcpy(conv->filter, filter, sizeof conv->filter);
    memcpy(conv->out, out, sizeof conv->out);
    return SUCCESS;
}

int mluOpGetSparseConvolutionNumActOut(Conv *conv, int *count) {
    if (!conv || !count) return NOT_INITIALIZED;
    *count = conv->num_act_out;
    return SUCCESS;
}

/* ---- checks ---- */

static Int elements(const Desc *desc) {
    Int count = 1;
    for (int i = 0; i < desc->rank; i++) count *= desc->dims[i];
    return count;
}

static size_t bytes(const Desc *desc) { return (size_t)elements(desc) * (desc->dtype == HALF ? 2 : 4); }

/* The dims follow; a rank of 0 to 4 of them counts. */
static int is(const Desc *desc, int layout, int dtype, int rank, Int a, Int b, Int c, Int d) {
    Int dims[] = {a, b, c, d};
    if (desc->rank != rank || desc->dtype != dtype || (layout != ANY && desc->layout != layout)) return 0;
    for (int i = 0; i < rank; i++)
        if (desc->dims[i] != dims[i]) return 0;
    return 1;
}

static int absent(const Handle *handle, const Work *work) {
    for (int i = 0; i < work->count; i++)
        if (!work->t[i].desc) return 1;
    return !handle;
}

static void run(void *argument) {
    Work *work = argument;
    Tensor *last = &work->t[work->count - 1];
    for (int i = 0; i < work->count; i++) work->t[i].desc = &work->copies[i]; /* the caller's may be gone */
    if (!standinFault("silent")) work->compute(work);
    if (standinFault("wrong")) *(int32_t *)last->data ^= 1 << 20;
    if (standinFault("overrun")) ((char *)last->data)[bytes(last->desc)] ^= 1;
    if (standinFault("input")) *(char *)work->t[0].data ^= 1;
    free(work);
}

/* Strides, large tensors (unfit), zero elements (on_empty), pointers, workspace; then into the queue. */
static int launch(Handle *handle, Work *work, int unfit, int on_empty, size_t needed, size_t given) {
    const char *status = getenv("STANDIN_STATUS");
    if (standinFault("crash")) raise(SIGSEGV);
    if (standinFault("nostatus")) return 99;
    if (status && atoi(status)) return atoi(status);
    for (int i = 0; i < work->count; i++)
        if (work->t[i].desc->strided) return unfit;
    for (int i = 0; i < work->count; i++)
        if (elements(work->t[i].desc) >= 1LL << 31) return unfit;
    for (int i = 0; i < work->count; i++)
        if (elements(work->t[i].desc) == 0) return on_empty;
    for (int i = 0; i < work->count; i++)
        if (!work->t[i].data) return BAD_PARAM;
    if (needed && (!work->workspace || (strict() && given < needed))) return BAD_PARAM;
    for (int i = 0; i < work->count; i++)
        if (!standinHolds(work->t[i].data, bytes(work->t[i].desc))) return EXECUTION_FAILED; /* no device memory */
    if (needed && !standinHolds(work->workspace, needed)) return EXECUTION_FAILED;
    for (int i = 0; i < work->count; i++) work->copies[i] = *work->t[i].desc;
    Work *queued = malloc(sizeof *queued);
    *queued = *work;
    standinEnqueue(handle->queue, run, queued);
    return SUCCESS;
}

/* ---- masked_im2col ---- */

static void im2col(Work *work) {
    const Int *dims = work->t[0].desc->dims, H = dims[2], W = dims[3], *n = work->n;
    size_t width = work->t[0].desc->dtype == HALF ? 2 : 4;
    Int M = work->t[1].desc->dims[0];
    const int32_t *mask_h = work->t[1].data, *mask_w = work->t[2].data;
    const char *feature = work->t[0].data;
    char *column = work->t[3].data;
    for (Int c = 0; c < dims[1]; c++)
        for (Int i = 0; i < n[0]; i++)
            for (Int j = 0; j < n[1]; j++)
                for (Int m = 0; m < M; m++, column += width) {
                    Int y = mask_h[m] - n[2] + i, x = mask_w[m] - n[3] + j;
                    if (y < 0 || y >= H || x < 0 || x >= W)
                        memset(column, 0, width);
                    else
                        memcpy(column, feature + (size_t)((c * H + y) * W + x) * width, width);
                }
}

int mluOpGetMaskedIm2colForwardWorkspaceSize(Handle *handle, Desc *feature, Desc *mask_h, Desc *mask_w, int kernel_h,
                                             int kernel_w, Desc *data_col, size_t *size) {
    if (!handle || !feature || !mask_h || !mask_w || !data_col || !size || kernel_h < 1 || kernel_w < 1)
        return BAD_PARAM;
    if (!strict() && elements(mask_h) == 0) return SUCCESS; /* *size stays as it was */
    *size = bytes(feature) + bytes(data_col);
    return SUCCESS;
}

int mluOpMaskedIm2colForward(Handle *handle, Desc *feature_desc, void *feature, Desc *mask_h_desc, void *mask_h,
                             Desc *mask_w_desc, void *mask_w, int kernel_h, int kernel_w, int pad_h, int pad_w,
                             void *workspace, size_t workspace_size, Desc *data_col_desc, void *data_col) {
    Work work = {.compute = im2col, .count = 4, .outputs = 1, .n = {kernel_h, kernel_w, pad_h, pad_w},
                 .workspace = workspace,
                 .t = {{feature_desc, feature}, {mask_h_desc, mask_h}, {mask_w_desc, mask_w}, {data_col_desc, data_col}}};
    if (absent(handle, &work) || kernel_h < 1 || kernel_w < 1 || feature_desc->rank != 4) return BAD_PARAM;
    const Int *dims = feature_desc->dims, M = mask_h_desc->dims[0];
    int dtype = feature_desc->dtype;
    if (dtype != HALF && dtype != FLOAT) return BAD_PARAM;
    if (!is(feature_desc, NCHW, dtype, 4, 1, dims[1], dims[2], dims[3])) return BAD_PARAM;
    if (!is(mask_h_desc, ANY, INT32, 1, M, 0, 0, 0) || !is(mask_w_desc, ANY, INT32, 1, M, 0, 0, 0)) return BAD_PARAM;
    if (!is(data_col_desc, ANY, dtype, 2, dims[1] * kernel_h * kernel_w, M, 0, 0)) return BAD_PARAM;
    size_t needed = bytes(feature_desc) + bytes(data_col_desc);
    return launch(handle, &work, NOT_SUPPORTED, elements(feature_desc) ? SUCCESS : BAD_PARAM, needed, workspace_size);
}

/* ---- psamask ---- */

/* n: psa_type, h_mask, w_mask, backward */
static void psamask(Work *work) {
    const Int *n = work->n, backward = n[3], hh = (n[1] - 1) / 2, hw = (n[2] - 1) / 2;
    const Int *dims = work->t[0].desc->dims, N = dims[0], H = dims[1], W = dims[2];
    float *masked = work->t[backward].data, *full = work->t[!backward].data;
    if (n[0] < 0 || n[0] > 1) return; /* the device knows two types alone */
    memset(work->t[1].data, 0, bytes(work->t[1].desc));
    for (Int b = 0; b < N; b++)
        for (Int h = 0; h < H; h++)
            for (Int w = 0; w < W; w++)
                for (Int p = 0; p < n[1]; p++)
                    for (Int q = 0; q < n[2]; q++) {
                        Int i = p + h - hh, j = q + w - hw, position = h * W + w, cell = i * W + j;
                        if (i < 0 || i >= H || j < 0 || j >= W) continue;
                        Int row = n[0] == 0 ? position : cell, column = n[0] == 0 ? cell : position;
                        float *at = &full[(b * H * W + row) * H * W + column];
                        float *mask = &masked[((b * H * W + position) * n[1] + p) * n[2] + q];
                        *(backward ? mask : at) = backward ? *at : *mask;
                    }
}

static int start_psamask(Handle *handle, int psa_type, Desc *in_desc, void *in, int h_mask, int w_mask, Desc *out_desc,
                         void *out, int backward) {
    Work work = {.compute = psamask, .count = 2, .outputs = 1, .n = {psa_type, h_mask, w_mask, backward},
                 .t = {{in_desc, in}, {out_desc, out}}};
    if (absent(handle, &work)) return BAD_PARAM;
    if (strict() && (psa_type < 0 || psa_type > 1 || h_mask < 1 || w_mask < 1)) return BAD_PARAM;
    Desc *masked = backward ? out_desc : in_desc, *full = backward ? in_desc : out_desc;
    const Int *dims = masked->dims;
    if (!is(masked, NHWC, FLOAT, 4, dims[0], dims[1], dims[2], (Int)h_mask * w_mask)) return BAD_PARAM;
    if (!is(full, NHWC, FLOAT, 4, dims[0], dims[1], dims[2], dims[1] * dims[2])) return BAD_PARAM;
    return launch(handle, &work, strict() ? NOT_SUPPORTED : BAD_PARAM, SUCCESS, 0, 0);
}

int mluOpPsamaskForward(Handle *handle, int psa_type, Desc *x_desc, void *x, int h_mask, int w_mask, Desc *y_desc,
                        void *y) {
    return start_psamask(handle, psa_type, x_desc, x, h_mask, w_mask, y_desc, y, 0);
}

int mluOpPsamaskBackward(Handle *handle, int psa_type, Desc *dy_desc, void *dy, int h_mask, int w_mask, Desc *dx_desc,
                         void *dx) {
    return start_psamask(handle, psa_type, dy_desc, dy, h_mask, w_mask, dx_desc, dx, 1);
}

/* ---- roi_crop ---- */

static void roi_crop(Work *work) {
    Int backward = work->n[0];
    const Int *dims = work->t[backward ? 2 : 0].desc->dims, B = dims[0], H = dims[1], W = dims[2], C = dims[3];
    const Int *bins = work->t[1].desc->dims, N = bins[0], per_roi = bins[1] * bins[2];
    float *images = work->t[backward ? 2 : 0].data, *crops = work->t[backward ? 0 : 2].data;
    const float *grid = work->t[1].data;
    Int per_image = N / B ? N / B : 1;
    memset(work->t[2].data, 0, bytes(work->t[2].desc));
    for (Int bin = 0; bin < N * per_roi; bin++) {
        Int image = bin / per_roi / per_image;
        if (image >= B) continue; /* N is no multiple of B: the vendor's device reads past the images here */
        double ay = (grid[2 * bin] + 1.0) * (double)(H - 1) / 2, ax = (grid[2 * bin + 1] + 1.0) * (double)(W - 1) / 2;
        for (int corner = 0; corner < 4; corner++) {
            double y = floor(ay) + corner / 2, x = floor(ax) + corner % 2;
            if (!(y >= 0 && y < (double)H && x >= 0 && x < (double)W)) continue;
            float weight = (float)((1 - fabs(ay - y)) * (1 - fabs(ax - x)));
            float *pixel = images + ((image * H + (Int)y) * W + (Int)x) * C, *crop = crops + bin * C;
            for (Int c = 0; c < C; c++)
                if (backward)
                    pixel[c] += weight * crop[c];
                else
                    crop[c] += weight * pixel[c];
        }
    }
}

static int start_roi_crop(Handle *handle, Desc *in_desc, void *in, Desc *grid_desc, void *grid, Desc *out_desc, void *out,
                          int backward) {
    Work work = {.compute = roi_crop, .count = 3, .outputs = 1, .n = {backward},
                 .t = {{in_desc, in}, {grid_desc, grid}, {out_desc, out}}};
    if (absent(handle, &work)) return BAD_PARAM;
    Desc *images = backward ? out_desc : in_desc, *crops = backward ? in_desc : out_desc;
    const Int *i = images->dims, *c = crops->dims;
    if (!is(images, NHWC, FLOAT, 4, i[0], i[1], i[2], i[3]) || !is(crops, NHWC, FLOAT, 4, c[0], c[1], c[2], i[3]))
        return BAD_PARAM;
    if (!is(grid_desc, ANY, FLOAT, 4, c[0], c[1], c[2], 2) || (strict() && i[0] && c[0] % i[0])) return BAD_PARAM;
    return launch(handle, &work, NOT_SUPPORTED, BAD_PARAM, 0, 0);
}

int mluOpRoiCropForward(Handle *handle, Desc *input_desc, void *input, Desc *grid_desc, void *grid, Desc *output_desc,
                        void *output) {
    return start_roi_crop(handle, input_desc, input, grid_desc, grid, output_desc, output, 0);
}

int mluOpRoiCropBackward(Handle *handle, Desc *grad_output_desc, void *grad_output, Desc *grid_desc, void *grid,
                         Desc *grad_input_desc, void *grad_input) {
    return start_roi_crop(handle, grad_output_desc, grad_output, grid_desc, grid, grad_input_desc, grad_input, 1);
}

/* ---- voxel_pooling ---- */

/* n: B, N, C, X, Y, Z */
static void voxel_pooling(Work *work) {
    const Int *n = work->n;
    const int32_t *point = work->t[0].data;
    const float *feature = work->t[1].data;
    float *pooled = work->t[2].data;
    int32_t *memo = work->t[3].data; /* the caller has filled it with -1 */
    memset(pooled, 0, bytes(work->t[2].desc));
    for (Int k = 0; k < n[0] * n[1]; k++, point += 3, memo += 3, feature += n[2]) {
        if (point[0] < 0 || point[0] >= n[3] || point[1] < 0 || point[1] >= n[4] || point[2] < 0 || point[2] >= n[5])
            continue;
        memo[0] = (int32_t)(k / n[1]), memo[1] = point[1], memo[2] = point[0];
        float *cell = pooled + ((memo[0] * n[4] + memo[1]) * n[3] + memo[2]) * n[2];
        for (Int c = 0; c < n[2]; c++) cell[c] += feature[c];
    }
}

int mluOpVoxelPoolingForward(Handle *handle, int batch_size, int num_points, int num_channels, int num_voxel_x,
                             int num_voxel_y, int num_voxel_z, Desc *geom_xyz_desc, void *geom_xyz,
                             Desc *input_features_desc, void *input_features, Desc *output_features_desc,
                             void *output_features, Desc *pos_memo_desc, void *pos_memo) {
    Int B = batch_size, N = num_points, C = num_channels, X = num_voxel_x, Y = num_voxel_y, Z = num_voxel_z;
    Work work = {.compute = voxel_pooling, .count = 4, .outputs = 2, .n = {B, N, C, X, Y, Z},
                 .t = {{geom_xyz_desc, geom_xyz}, {input_features_desc, input_features},
                       {output_features_desc, output_features}, {pos_memo_desc, pos_memo}}};
    if (absent(handle, &work) || B < 1 || N < 1 || C < 1 || X < 1 || Y < 1 || Z < 1) return BAD_PARAM;
    if (!is(geom_xyz_desc, ANY, INT32, 3, B, N, 3, 0) || !is(input_features_desc, ANY, FLOAT, 3, B, N, C, 0))
        return BAD_PARAM;
    if (!is(output_features_desc, ANY, FLOAT, 4, B, Y, X, C) || !is(pos_memo_desc, ANY, INT32, 3, B, N, 3, 0))
        return BAD_PARAM;
    return launch(handle, &work, NOT_SUPPORTED, BAD_PARAM, 0, 0);
}

/* ---- get_indice_pairs ---- */

static Int offsets(const Conv *conv) { return (Int)conv->filter[0] * conv->filter[1] * conv->filter[2]; }

static int ascending(const void *a, const void *b) {
    Int x = *(const Int *)a, y = *(const Int *)b;
    return (x > y) - (x < y);
}

static Int number(const Conv *conv, const Int site[4]) {
    return ((site[0] * conv->out[0] + site[1]) * conv->out[1] + site[2]) * conv->out[2] + site[3];
}

/* The cell that a site reaches by kernel offset k, -1 where it reaches none. */
static Int reach(const Conv *conv, const int32_t *index, Int k) {
    Int site[4] = {index[0]}, of_axis[3] = {k / conv->filter[2] / conv->filter[1], k / conv->filter[2] % conv->filter[1],
                                            k % conv->filter[2]};
    for (int i = 0; i < 3; i++) {
        Int at = index[1 + i] + conv->pad[i] - of_axis[i] * conv->dilation[i];
        if (at < 0 || at % conv->stride[i] || at / conv->stride[i] >= conv->out[i]) return -1;
        site[1 + i] = at / conv->stride[i];
    }
    return number(conv, site);
}

/* The vendor's host code takes one cell of these kernels for that of the invalid candidates, though there may be none. */
static int loses_one(const Conv *conv) {
    int a = conv->filter[0], b = conv->filter[1], c = conv->filter[2];
    return !strict() && ((a == 2 && b == 2 && c == 2) || (a == 1 && b == 3 && c == 3));
}

/* The workspace holds pairs (cell, row) of the active outputs, sorted by cell. */
static void indice_pairs(Work *work) {
    Conv *conv = work->conv;
    Int L = work->t[0].desc->dims[0], K = offsets(conv), rows = work->t[3].desc->dims[0], count = 0, *cells = work->workspace;
    const int32_t *indices = work->t[0].data;
    int32_t *pairs = work->t[1].data, *num = work->t[2].data, *out = work->t[3].data;
    for (Int j = 0; j < L; j++)
        for (Int k = 0; k < (conv->sub_m ? 1 : K); k++) {
            const int32_t *index = indices + 4 * j;
            Int own[4] = {index[0], index[1], index[2], index[3]};
            Int cell = conv->sub_m ? number(conv, own) : reach(conv, index, k);
            if (cell >= 0) cells[2 * count] = cell, cells[2 * count + 1] = j, count++;
        }
    int all_valid = count == K * L;
    qsort(cells, (size_t)count, 2 * sizeof *cells, ascending);
    if (!conv->sub_m) {
        Int distinct = 0;
        for (Int i = 0; i < count; i++)
            if (!i || cells[2 * i] != cells[2 * distinct - 2])
                cells[2 * distinct] = cells[2 * i], cells[2 * distinct + 1] = distinct, distinct++;
        count = distinct;
    }
    if (strict() || !conv->sub_m) conv->num_act_out = (int)count - (!conv->sub_m && all_valid && loses_one(conv));
    for (Int i = 0; i < count; i++) {
        Int cell = cells[2 * i], row = cells[2 * i + 1];
        if (row >= rows) continue;
        for (int axis = 2; axis >= 0; cell /= conv->out[axis--]) out[4 * row + 1 + axis] = (int32_t)(cell % conv->out[axis]);
        out[4 * row] = (int32_t)cell;
    }
    for (Int k = 0; k < K; k++) {
        num[k] = 0;
        for (Int j = 0; j < L; j++) {
            Int cell = reach(conv, indices + 4 * j, k);
            Int *found = cell < 0 ? NULL : bsearch(&cell, cells, (size_t)count, 2 * sizeof *cells, ascending);
            if (!found) continue;
            pairs[k * 2 * L + num[k]] = (int32_t)j;
            pairs[k * 2 * L + L + num[k]++] = (int32_t)found[1];
        }
    }
}

int mluOpGetIndicePairsWorkspaceSize(Handle *handle, Conv *conv, Desc *indices, Desc *pairs, Desc *out_indices, Desc *num,
                                     size_t *size) {
    if (!handle || !conv || !indices || !pairs || !out_indices || !num || !size || !conv->set) return BAD_PARAM;
    if (pairs->rank != 3 || num->rank != 1) return BAD_PARAM; /* handed over in another order */
    *size = (size_t)(offsets(conv) * indices->dims[0]) * 2 * sizeof(Int);
    return SUCCESS;
}

int mluOpGetIndicePairs(Handle *handle, Conv *conv, Desc *indices_desc, void *indices, void *workspace,
                        size_t workspace_size, Desc *pairs_desc, void *pairs, Desc *out_indices_desc, void *out_indices,
                        Desc *num_desc, void *num) {
    Work work = {.compute = indice_pairs, .count = 4, .outputs = 3, .conv = conv, .workspace = workspace,
                 .t = {{indices_desc, indices}, {pairs_desc, pairs}, {num_desc, num}, {out_indices_desc, out_indices}}};
    if (absent(handle, &work) || !conv || !conv->set) return BAD_PARAM;
    Int L = indices_desc->dims[0], K = offsets(conv), A = out_indices_desc->dims[0], in = conv->batch, out = conv->batch;
    for (int i = 0; i < 3; i++) {
        in *= conv->in[i], out *= conv->out[i];
        if (conv->pad[i] < 0 || conv->stride[i] < 1 || conv->dilation[i] < 1) return BAD_PARAM;
        if (conv->stride[i] != 1 && conv->dilation[i] != 1) return BAD_PARAM;
        if (conv->sub_m && (conv->stride[i] != 1 || conv->dilation[i] != 1 || conv->in[i] != conv->out[i]))
            return BAD_PARAM;
    }
    if (!is(indices_desc, ANY, INT32, 2, L, 4, 0, 0) || !is(out_indices_desc, ANY, INT32, 2, A, 4, 0, 0)) return BAD_PARAM;
    if (!is(pairs_desc, ANY, INT32, 3, K, 2, L, 0) || !is(num_desc, ANY, INT32, 1, K, 0, 0, 0)) return BAD_PARAM;
    if (K > 4096 || L > in || A > out || (strict() && conv->sub_m && A < L)) return BAD_PARAM;
    conv->num_act_out = 0;
    return launch(handle, &work, NOT_SUPPORTED, SUCCESS, (size_t)(K * L) * 2 * sizeof(Int), workspace_size);
}
