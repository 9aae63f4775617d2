"""Clashes of packages, by made-up metadata; what does not load."""

from importlib.metadata import PackageNotFoundError

import pytest

from tilec.report.doctor import packages
from tilec.report.doctor.packages import NATIVE, loading, python

VERSIONS = {"tilec": "0.1.0", "apache-tvm": "0.27.0", "apache-tvm-ffi": "0.1.14", "numpy": "2.1"}
NEEDS = {
    "tilec": [
        "apache-tvm<0.28,>=0.27",
        "apache-tvm-ffi<0.1.15,>=0.1.14",
        "numpy>=2.0",
        "openvino>=1; extra == 'bench'",
    ],
    "apache-tvm": ["apache_tvm_ffi>=0.1.14", "wincolor; sys_platform == 'win32'"],
}


@pytest.fixture
def installed(monkeypatch):
    """Packages as they are in VERSIONS and NEEDS; returns a copy of the versions to change."""
    versions = dict(VERSIONS)

    def version(name):
        try:
            return versions[name.replace("_", "-")]
        except KeyError:
            raise PackageNotFoundError(name) from None

    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "requires", lambda name: NEEDS.get(name))
    return versions


def told(findings):
    return [(f.status, f.text, f.fix) for f in findings]


def test_what_goes_together(installed):
    text = "tilec 0.1.0 and the 3 packages that it needs go together"
    assert told(packages.packages()) == [("ok", text, "")]


def test_a_package_of_another_version_clashes(installed):
    installed["numpy"] = "1.26"
    text = "numpy 1.26 is installed: tilec 0.1.0 needs >=2.0"
    assert told(packages.packages()) == [("error", text, "pip install 'numpy>=2.0'")]


def test_needs_of_needs_clash(installed):
    installed["apache-tvm-ffi"] = "0.1.9"
    owners = [text.partition(": ")[2].split()[0] for _, text, _ in told(packages.packages())]
    assert owners == ["tilec", "apache-tvm"]


def test_a_missing_package(installed):
    del installed["numpy"]
    text = "numpy is not installed: tilec 0.1.0 needs >=2.0"
    assert told(packages.packages()) == [("error", text, "pip install 'numpy>=2.0'")]


def test_a_checkout_that_is_not_installed(installed):
    del installed["tilec"]
    (finding,) = packages.packages()
    assert finding.status == "warning"
    assert "pip install -e ." in finding.fix


def test_what_does_not_load_is_named():
    (finding,) = loading(lambda module: "libstdc++.so.6: not found" if module == "tvm" else "")
    assert finding.text == "apache-tvm is installed and does not load: libstdc++.so.6: not found"
    assert finding.fix.startswith("Install it anew: pip install --force-reinstall apache-tvm==")


def test_what_loads_is_listed_with_versions():
    seen = []
    (finding,) = loading(lambda module: seen.append(module) or "")
    assert finding.status == "ok"
    assert sorted(seen) == sorted(NATIVE.values())


def test_a_module_is_imported_in_a_process_of_its_own():
    assert packages._imported("string") == ""
    assert packages._imported("no_such_module") == "ModuleNotFoundError: No module named 'no_such_module'"
    assert packages._imported("os; os.abort()") == "it is ended by signal 6"


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(packages.platform, "python_version", lambda: "3.9.1")
    (finding,) = python()
    assert finding.status == "error"
    assert "tilec needs >=3.11" in finding.text
