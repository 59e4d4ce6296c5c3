"""The last step of every case: its metadata is completed, its files are written, its manifest entry is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generators.casegen import journal
from generators.casegen.manifest import Entry, hash_array, hash_files
from generators.casegen.node import set_origins
from generators.casegen.write_options import WriteOptions
from generators.contracts.bound_case import REFERENCE
from generators.contracts.faults import Fault
from generators.contracts.model import Params, Shape
from generators.contracts.operator import Array, Arrays, Operator
from schemas.case_ids import id_parts
from schemas.casefiles.error_bounds import store_bounds
from schemas.casefiles.reading import write_case
from schemas.path_names import check_case_name
from schemas.protos import messages as proto

MaybeArrays = Mapping[str, Array | None]


@dataclass(frozen=True, slots=True)
class CaseContent:
    """Everything that goes into the files of one case and into its manifest entry.

    node holds the tensors' headers, inputs and outputs the arrays by name in the same order, None where no values are
    stored. recipes says how inputs came about. bounds holds error bounds by the file's id of the output. tensors lists
    (name, dtype, layout, dims). recipe is the hash of all that decides the files, empty where nobody asks for it.
    origin tells the spec file (casegen/node.py), empty where there is none.
    """

    id: str
    node: Any
    inputs: MaybeArrays
    outputs: MaybeArrays
    recipes: Mapping[str, str]
    omitted: frozenset[str]
    expect: Sequence[str]
    faults: Sequence[Fault]
    tags: Sequence[str]
    params: Params
    place: str
    tensors: Sequence[tuple[str, str, str, Shape]]
    bounds: Mapping[str, Array] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    recipe: str = ""
    origin: str = ""

    def entry(self, hashes: Mapping[str, tuple[str, str]]) -> Entry:
        """The manifest entry but for the files and their bytes."""
        tensors = [
            {"name": name, "dtype": dtype, "layout": layout, "shape": list(dims)}
            | ({"hash": hashes[name][1]} if name in hashes else {})
            for name, dtype, layout, dims in self.tensors
        ]
        meta = proto.get_meta(self.node)
        assert meta is not None
        return {
            "data_version": meta.data_version or 1,
            "expect": list(self.expect),
            **({"beyond_design": True} if meta.beyond_design else {}),
            "faults": list(map(str, self.faults)),
            "tags": list(self.tags),
            "params": dict(self.params),
            "place": self.place,
            **({"origin": self.origin} if self.origin else {}),
            "tensors": tensors,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }


def write_content(content: CaseContent, options: WriteOptions) -> Entry:
    """Write the case in each format of the options, and return its manifest entry.

    The node's metadata gets the hash of every tensor that has data. InputError where the case's name can't be a path,
    UnavailableError where writing fails.
    """
    _, suite, name = id_parts(content.id)
    check_case_name(suite, name)
    arrays = _present(content.inputs) | _present(content.outputs)
    hashes = {name: (content.recipes.get(name, REFERENCE), hash_array(array)) for name, array in arrays.items()}
    set_origins(content.node, hashes, sorted(content.omitted))
    entry = content.entry(hashes)
    journal.append(options.out, content.id, entry)
    sizes: dict[str, int] = {}
    for suffix in options.suffixes:
        path = options.out / f"{content.id}{suffix}"
        inputs, outputs = list(content.inputs.values()), list(content.outputs.values())
        beside = store_bounds(content.node, content.bounds, path, options.inline_limit)
        written = write_case(path, content.node, inputs, outputs, inline_limit=options.inline_limit, more=beside)
        for file in written.files:
            sizes[file.relative_to(options.out).as_posix()] = file.stat().st_size
    entry |= {"files": sorted(sizes), "bytes": sum(sizes.values())}
    if content.recipe:
        entry |= {"recipe": content.recipe, "content": hash_files(options.out / file for file in entry["files"])}
    journal.append(options.out, content.id, entry)
    return entry


def set_theory(node: Any, operator: Operator, params: Params, inputs: MaybeArrays, outputs: MaybeArrays) -> None:
    """Put the theoretical operations and bytes of one call into the node."""
    given, computed = _present(inputs), _present(outputs)
    if len(given) + len(computed) < len(inputs) + len(outputs):
        return  # the work may depend on the sizes or values of a tensor without data
    env = operator.contract.bind({name: array.shape for name, array in (given | computed).items()}, params)
    node.theory_io_size = operator.theory_io_bytes(env, given, computed)
    node.theory_compute_ops = operator.theory_ops(env, given, computed)


def _present(arrays: MaybeArrays) -> Arrays:
    return {name: array for name, array in arrays.items() if array is not None}
