"""Files that torch.save writes, good and bad, for tests/test_serialize.c; pt.json says what the good
ones hold. Run it in this folder with a Python that has PyTorch."""
import collections
import io
import json
import os
import pickle
import zipfile

import torch

torch.manual_seed(3)
matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 8


def rewrite(data, edit):
    """The archive with its entries passed through edit(name, bytes) -> [(name, bytes)]."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            for name, content in edit(info.filename, old.read(info)):
                new.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def as_newer_torch(name, content):
    """The entries that PyTorch 2.9 adds, in its order."""
    folder = name.split("/")[0]
    entries = [(name, content)]
    if name.endswith("data.pkl"):
        entries.append((f"{folder}/.format_version", b"1"))
        entries.append((f"{folder}/.storage_alignment", b"64"))
        entries.append((f"{folder}/byteorder", b"little"))
    if name.endswith("version") and "format" not in name:
        entries.append((f"{folder}/.data/serialization_id", b"0" * 40))
    return entries


def big_endian(name, content):
    return [(name, content)] + ([("archive/byteorder", b"big")] if "data.pkl" in name else [])


def compressed(data):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(zipfile.ZipInfo(info.filename), old.read(info), zipfile.ZIP_DEFLATED)
    return out.getvalue()


class System:
    def __reduce__(self):
        return os.system, ("true",)


dictionary = {"a": matrix, "b": matrix.double() / 3, "c": matrix.half(), "d": torch.tensor(2.5)}
ordered = collections.OrderedDict(
    view=matrix[1:],
    transposed=matrix.t(),
    column=matrix[:, 2],
    expanded=matrix[:, :1].expand(3, 2),
    trained=torch.nn.Parameter(matrix.clone()),
    empty=torch.zeros(0),
)
layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
many = {f"layer{i}": torch.full((i % 3 + 1,), float(i)) for i in range(300)}
good = {
    "dict.pt": (dictionary, saved(dictionary)),
    "ordered.pt": (ordered, saved(ordered)),
    "state_dict.pt": (layers.state_dict(), saved(layers.state_dict())),
    "newer_torch.pt": ({"a": matrix, "b": matrix[0]}, rewrite(saved({"a": matrix, "b": matrix[0]}), as_newer_torch)),
    "long.pt": (many, saved(many)),
}
bad = {
    "bad_nested.pt": saved({"inner": {"a": matrix}}),
    "bad_number.pt": saved({"a": matrix, "epoch": 3}),
    "bad_list.pt": saved({"a": [matrix]}),
    "bad_float.pt": saved({"lr": 0.5}),
    "bad_tensor.pt": saved(matrix),
    "bad_long_tensor.pt": saved({"a": torch.arange(3)}),
    "bad_bfloat16.pt": saved({"a": matrix.bfloat16()}),
    "bad_sparse.pt": saved({"a": torch.eye(2).to_sparse()}),
    "bad_module.pt": saved(torch.nn.Linear(2, 2)),
    "bad_system.pt": saved({"a": System()}),
    "bad_protocol.pt": saved({"a": matrix}, pickle_protocol=4),
    "bad_compressed.pt": compressed(saved({"a": matrix})),
    "bad_big_endian.pt": rewrite(saved({"a": matrix}), big_endian),
    "bad_expanded.pt": saved({"a": torch.zeros(1).expand(2**40)}),
    "bad_not_zip.pt": pickle.dumps({"a": 1}, protocol=2),
    "bad_int_key.pt": saved({1: matrix}),
}


def described(name, tensor):
    return {
        "name": name,
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "values": tensor.detach().double().tolist(),
    }


contents = {f: [described(*item) for item in values.items()] for f, (values, _) in good.items()}
with open("pt.json", "w", encoding="utf-8") as out:
    json.dump(contents, out, indent=None)
for file, data in list(bad.items()) + [(file, data) for file, (_, data) in good.items()]:
    with open(file, "wb") as out:
        out.write(data)
