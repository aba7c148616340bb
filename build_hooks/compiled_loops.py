"""Code of everyday loops for a wheel, compiled while it is built: what is installed on this machine then need not compile it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What everyday calls are about: about as much to compile each, in processes of their own.
TOPICS = ("factors", "graphs")


class CompiledLoopsHook(BuildHookInterface):
    """Runs everyday calls on a copy of the package, and takes along the compiled code that they leave beside the sources."""

    def initialize(self, version, build_data):
        """Compile; an editable installation keeps its code beside its own sources, and compiles when it is called."""
        if version == "editable":
            return
        self.folder = tempfile.mkdtemp()
        package = Path(self.folder, "cvxnmf")
        shutil.copytree(Path(self.root, "src", "cvxnmf"), package, ignore=shutil.ignore_patterns("__pycache__"))
        if not _compile(self.folder, Path(self.root, "build_hooks", "everyday_calls.py")):
            self.app.display_warning("Everyday loops could not be compiled: the package will compile them when they are called.")
            return
        for code in [*package.rglob("*.nbi"), *package.rglob("*.nbc")]:
            build_data["force_include"][str(code)] = code.relative_to(self.folder).as_posix()
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version, build_data, artifact_path):
        """Remove the copy."""
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)


def _compile(folder, calls):
    """Run everyday calls with the package in a folder, and have their code kept there; whether all of them came to an end."""
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": path}
    workers = [subprocess.Popen([sys.executable, str(calls), topic], env=environment) for topic in TOPICS]
    return all([worker.wait() == 0 for worker in workers])
