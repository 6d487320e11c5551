"""Builds the package for pip: `pyproject.toml` names this module as its build backend (PEP 517 and 660).

The package is Python alone, so its wheel is an archive of its files. Python's own library makes that: pip needs neither
setuptools nor wheel, which an environment without network may lack, and nothing is written beside the sources.
"""

import ast
import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

SOURCES = pathlib.Path(__file__).resolve().parent
# In the library's sources the licences are links, which a copy of this directory alone may have lost.
LICENCES = [name for name in ("LICENSE-APACHE", "LICENSE-MIT") if (SOURCES / name).is_file()]
# The sources, for an archive of them.
SOURCE_FILES = [*LICENCES, "README.md", "pyproject.toml", "wheels.py"]


def _field(key):
    """The value of a key of pyproject.toml: a string or a list of strings, which are written as in Python."""
    text = (SOURCES / "pyproject.toml").read_text(encoding="utf-8")
    return ast.literal_eval(re.search(rf"^{key} = (\".*\"|\[[^\]]*\])$", text, re.MULTILINE).group(1))


def _metadata():
    extras = [("test", each) for each in _field("test")]
    lines = ["Metadata-Version: 2.1", f"Name: {_field('name')}", f"Version: {_field('version')}"]
    lines += [f"Summary: {_field('description')}", f"Requires-Python: {_field('requires-python')}"]
    lines += [f"Requires-Dist: {each}" for each in _field("dependencies")]
    lines += [f"Provides-Extra: {extra}" for extra in dict(extras)]
    lines += [f'Requires-Dist: {each}; extra == "{extra}"' for extra, each in extras]
    lines += [f"Classifier: {each}" for each in _field("classifiers")]
    lines += [*(f"License-File: {name}" for name in LICENCES), "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (SOURCES / "README.md").read_text(encoding="utf-8")


def _base_name():
    return f"{_field('name')}-{_field('version')}"


def _information():
    """The files that describe the installation, except the list of all files."""
    wheel = "Wheel-Version: 1.0\nGenerator: vgasnet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"METADATA": _metadata().encode(), "WHEEL": wheel.encode()}
    for name in LICENCES:
        files[name] = (SOURCES / name).read_bytes()
    return {f"{_base_name()}.dist-info/{name}": content for name, content in files.items()}


def _package():
    files = [*sorted((SOURCES / "vgasnet").glob("*.py")), SOURCES / "vgasnet" / "py.typed"]
    return {path.relative_to(SOURCES).as_posix(): path.read_bytes() for path in files}


def _write_wheel(directory, files):
    """Writes a wheel of these files, and returns its name."""
    name = f"{_base_name()}-py3-none-any.whl"
    record = f"{_base_name()}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
            archive.writestr(path, content)
        archive.writestr(record, "".join(lines) + f"{record},,\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    return _write_wheel(wheel_directory, {**_package(), **_information()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 660: the package stays where its sources are."""
    return _write_wheel(wheel_directory, {"vgasnet.pth": f"{SOURCES}\n".encode(), **_information()})


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517."""
    files = {name: (SOURCES / name).read_bytes() for name in SOURCE_FILES}
    files = {**files, **_package(), "PKG-INFO": _metadata().encode()}
    name = f"{_base_name()}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{_base_name()}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return name
