# SPDX-License-Identifier: Apache-2.0
"""wheel.py TARBALL PLATFORM [ARCH...]: the wheel of a tarball of `make dist`, beside it, for PLATFORM (manylinux_2_36).

pip puts its nojit on PATH as it is: a program, which Python has no part in. It depends on nvidia-cublas, where cuBLASLt is. ARCHS that
are not the default are in the version (0.1.0+sm.121). Refused is a binary that needs more of a machine than PLATFORM promises. Same
tarball, same Python: same bytes; dates are $SOURCE_DATE_EPOCH, 1980-01-01 at the earliest, which zip can hold.
"""
import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+")
METADATA = """Metadata-Version: 2.4
Name: nojit
Version: {version}
Summary: Distils language models on NVIDIA GPUs, with every kernel compiled before the program starts
License-Expression: {licence}
{files}Keywords: distillation,language model,CUDA
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Requires-Dist: nvidia-cublas>=13,<14
Description-Content-Type: text/markdown

"""


def refuse(reason):
    sys.exit(f"wheel: {reason}")


def machine_of(binary, platform):
    """The type of machine that the binary is for, which must find on PLATFORM all that it needs."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(binary)
        file.flush()
        env = dict(os.environ, LC_ALL="C")
        said = subprocess.run(["readelf", "-hdVW", file.name], env=env, capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
        if not ALLOWED.fullmatch(library):
            refuse(f"the binary is linked with {library}, which {platform} does not have")
    newest = max(tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([\d.]+)", said))
    if newest > tuple(map(int, platform.split("_")[1:])):
        refuse(f"the binary needs glibc {'.'.join(map(str, newest))}, {platform} promises less; build on an older system")
    return MACHINES[re.search(r"Machine: +(.*)", said)[1]]


def licence_of(sbom):
    """Return the licence expression of nojit and all that is linked into it."""
    linked = {r["relatedSpdxElement"] for r in sbom["relationships"] if r["relationshipType"] in ("DESCRIBES", "STATIC_LINK")}
    stated = [p["licenseDeclared"] for p in sbom["packages"] if p["SPDXID"] in linked]
    return " AND ".join(sorted({part for licence in stated for part in licence.split(" AND ")}))


def description_of(readme):
    """The README without links to files, which nobody has beside it."""
    return re.sub(rb"!?\[([^]]*)\]\((?!https?:|mailto:|#)[^)]*\)", rb"\1", readme)


def wheel_files(packed, platform, archs):
    """The wheel's name, and its files by path; the last is RECORD."""
    sbom = json.loads(packed["nojit.spdx.json"])
    version = next(p["versionInfo"] for p in sbom["packages"] if p["name"] == "nojit")
    version += "+" + ".".join(archs).replace("_", ".") if archs else ""
    tag = f"py3-none-{platform}_{machine_of(packed['nojit'], platform)}"
    name = f"nojit-{version}"
    info = f"{name}.dist-info/"
    terms = {"LICENSE": packed["LICENSE"]}
    terms.update((path, data) for path, data in sorted(packed.items()) if path.startswith("licences/"))
    metadata = METADATA.format(version=version, licence=licence_of(sbom), files="".join(f"License-File: {t}\n" for t in terms))
    files = {
        f"{name}.data/scripts/nojit": packed["nojit"],
        f"{name}.data/data/share/man/man1/nojit.1": packed["nojit.1"],
        **{f"{info}licenses/{path}": data for path, data in terms.items()},
        f"{info}METADATA": metadata.encode() + description_of(packed["README.md"]),
        f"{info}WHEEL": f"Wheel-Version: 1.0\nGenerator: nojit ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}sboms/nojit.spdx.json": packed["nojit.spdx.json"],
    }
    files = dict(sorted(files.items()))
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") for path, data in files.items()}
    rows = [f"{path},sha256={digests[path]},{len(data)}\n" for path, data in files.items()] + [f"{info}RECORD,,\n"]
    files[f"{info}RECORD"] = "".join(rows).encode()
    return f"{name}-{tag}.whl", files


def write(path, files):
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    with zipfile.ZipFile(path + ".part", "w") as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3  # Unix: permissions count
            entry.external_attr = (stat.S_IFREG | (0o755 if "/scripts/" in name else 0o644)) << 16
            out.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    os.replace(path + ".part", path)


def main(tarball, platform, *archs):
    with tarfile.open(tarball) as tar:
        packed = {m.name.split("/", 1)[1]: tar.extractfile(m).read() for m in tar if m.isfile()}
    name, files = wheel_files(packed, platform, archs)
    path = os.path.join(os.path.dirname(tarball), name)
    write(path, files)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        refuse("usage: wheel.py TARBALL PLATFORM [ARCH...]")
    main(*sys.argv[1:])
