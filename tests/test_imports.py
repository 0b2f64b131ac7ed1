"""Imports point to lower layers, without cycles; the sandbox is independent; page objects catch no broad exceptions."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "crawler"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Component (a module or a package of crawler/) -> its layer. A module imports from its component and from lower layers.
LAYERS = {
    "errors": 0,
    "logs": 0,
    "reading": 1,
    "storage": 1,
    "targets.coverage": 1,  # imports nothing; sweeps of platforms return it, too
    "jobs": 2,
    "platforms": 2,
    "targets": 3,
    "pipelines": 4,
    "outputs": 5,
    "downloads": 5,
    "middlewares": 6,
    "monitoring": 6,
    "browser": 6,
    # The parts of jobs that depend on targets and outputs.
    "jobs.seen": 4,
    "jobs.source": 5,
    "jobs.intake": 4,
    "jobs.extension": 6,
    "downloads.facts": 1,  # imports nothing
    "jobs.shared_facts": 4,
    "jobs.arguments": 10,
    "jobs.rows": 10,
    "jobs.output": 11,
    "downloads.page_spider": 7,
    "spiders": 8,
    "registry": 9,
    "items": 4,
    "mcp": 10,
    "probe": 10,
    "service": 12,
    # The parts that import nothing of the project.
    "runtime": 0,
    "commands.exit_codes": 0,
    "configuration.setting_types": 0,
    "settings": 9,
    "configuration": 10,
    "components": 0,
    "addon": 10,
    "commands": 13,
}
SANDBOX = "sandbox"
MAY_IMPORT_SANDBOX = {"commands", "service"}
BROAD = {"Exception", "BaseException"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def component_of(module: str) -> str | None:
    """The component of ``crawler.<component>...``; None for the package itself."""
    parts = module.split(".")
    inner = ".".join(parts[1:3])
    return inner if inner in LAYERS else parts[1] if len(parts) > 1 and parts[1] != "__init__" else None


def imported(path: Path) -> Iterator[str]:
    """Yield the project's modules that a module imports at run time, not under ``TYPE_CHECKING``."""
    tree = ast.parse(path.read_text())
    type_checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in node.body
        for inner in ast.walk(child)
    }
    for node in ast.walk(tree):
        if id(node) in type_checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "crawler")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the component"
            if node.module == "crawler":
                yield from (f"crawler.{alias.name}" for alias in node.names)
            elif node.module is not None and node.module.startswith("crawler."):
                within = [f"{node.module}.{alias.name}" for alias in node.names]
                modules = {name_of(each) for each in MODULES}
                yield from (each if each in modules else node.module for each in within)


def import_graph(package: Path) -> dict[str, set[str]]:
    """The modules that each module of a package imports, also in functions or under ``TYPE_CHECKING``."""
    paths = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                within = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= within if within <= paths.keys() else {str(node.module), *within}
        graph[module] = named & paths.keys() - {module}
    return graph


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one import cycle, the first repeated as the last; [] without a cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


def test_no_cycle_in_imports() -> None:
    cycle = cycle_in(import_graph(PACKAGE))
    assert not cycle, "circular imports: " + " imports ".join(cycle)


@pytest.mark.parametrize(
    "source",
    [
        "from sample.b import B",
        "from sample import b",
        "import sample.b",
        "if TYPE_CHECKING:\n    from sample.b import B",
        "def late():\n    from sample.b import B",
    ],
)
def test_a_cycle_in_imports_is_found(tmp_path: Path, source: str) -> None:
    modules = {"__init__": "", "a": source, "b": "from sample.c import C", "c": "from sample.a import A"}
    (tmp_path / "sample").mkdir()
    for name, text in modules.items():
        (tmp_path / f"sample/{name}.py").write_text(text)
    assert set(cycle_in(import_graph(tmp_path / "sample"))) == {"sample.a", "sample.b", "sample.c"}


def test_every_component_has_a_layer() -> None:
    components = {component_of(name_of(path)) for path in MODULES} - {None, SANDBOX}
    assert components <= set(LAYERS)


@pytest.mark.parametrize("path", [p for p in MODULES if component_of(name_of(p)) in LAYERS], ids=name_of)
def test_imports_point_to_lower_layers(path: Path) -> None:
    component = component_of(name_of(path))
    assert component is not None
    for module in imported(path):
        target = component_of(module)
        if target == SANDBOX:
            assert component in MAY_IMPORT_SANDBOX, f"{component} must not import {module}"
        elif target != component and target is not None:
            assert LAYERS[target] < LAYERS[component], f"{module} is not below {component}"


@pytest.mark.parametrize("path", sorted((PACKAGE / SANDBOX).rglob("*.py")), ids=name_of)
def test_the_sandbox_imports_only_itself(path: Path) -> None:
    assert {component_of(module) for module in imported(path)} <= {SANDBOX}


@pytest.mark.parametrize("path", sorted((PACKAGE / "platforms").rglob("*.py")), ids=name_of)
def test_page_objects_catch_no_broad_exception(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{path.name}:{node.lineno}: a bare except"
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            assert not BROAD & {ast.unparse(kind) for kind in caught}, f"{path.name}:{node.lineno}: a broad except"


def test_ho3_13_machinery_is_in_the_packages_and_not_among_the_spiders() -> None:
    root = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert root == {
        *("settings", "items", "pipelines", "middlewares", "errors", "registry", "logs"),
        *("addon", "components"),  # an add-on's path is public, and both are read by users
    }
    spiders = {path.stem for path in (PACKAGE / "spiders").glob("*.py")} - {"__init__"}
    platforms = {path.parent.name for path in (PACKAGE / "platforms").glob("*/__init__.py")}
    assert spiders == platforms | {"base", "first"}
