"""Modules import only from lower layers and without cycles, and the sandbox is independent."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "crawler"

# Component (module or package in crawler/) -> its layer. A module may import from its own component, from components of
# its own package in the same layer, and from lower layers.
LAYERS = {
    # The modules that import nothing of the project.
    "errors": 0,
    "logs": 0,
    "runtime": 0,
    "storage.files": 0,
    "configuration.setting_types": 0,
    "configuration.names": 0,
    "outputs.formats": 0,
    "reading": 1,
    "storage": 1,
    "components": 1,
    "settings": 1,
    "downloads.facts": 1,
    "jobs": 2,
    "platforms": 2,
    "targets": 3,
    "jobs.shared_facts": 3,
    "registry": 4,
    "items": 4,
    "pipelines": 4,
    "outputs": 4,
    "downloads": 4,
    # The modules of jobs that depend on targets and outputs.
    "jobs.seen": 4,
    "jobs.intake": 4,
    "jobs.source": 4,
    "jobs.crawls": 4,
    "middlewares": 5,
    "monitoring": 5,
    "browser": 5,
    "configuration": 5,
    "spiders": 6,
    # The modules of jobs that depend on the registry and on monitoring.
    "jobs.changes": 6,
    "jobs.extension": 6,
    "jobs.outcomes": 6,
    "jobs.output": 6,
    "probe": 6,
    "addon": 7,
    "service": 7,
    "commands": 8,
}
SANDBOX = "sandbox"
MAY_IMPORT_SANDBOX = {"commands", "downloads", "service"}


def component_of(module: str) -> str | None:
    """Return the component of a module: the key of ``LAYERS`` for ``crawler.<component>...``; None for ``crawler``."""
    parts = module.split(".")
    inner = ".".join(parts[1:3])
    return inner if inner in LAYERS else parts[1] if len(parts) > 1 else None


def import_graph(package: Path, *, for_types: bool = True) -> dict[str, set[str]]:
    """Return module -> imported modules, also in functions. ``for_types``: include ``TYPE_CHECKING`` blocks."""
    paths = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        named: set[str] = set()
        for node in statements(ast.parse(path.read_text()), for_types=for_types):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                within = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= within if within <= paths.keys() else {str(node.module), *within}
        graph[module] = named & paths.keys() - {module}
    return graph


def statements(node: ast.AST, *, for_types: bool) -> Iterator[ast.stmt]:
    """Yield all statements below a node. ``for_types``: include those in ``TYPE_CHECKING`` blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            is_for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if for_types or not is_for_types:
                yield from statements(child, for_types=for_types)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of an import cycle, with the first one repeated at the end, or [] if there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


def test_no_cycle_in_imports() -> None:
    cycle = cycle_in(import_graph(PACKAGE))
    assert not cycle, "circular imports: " + " imports ".join(cycle)


def import_breaking_layers(component: str, module: str) -> bool:
    """Return whether the layers forbid a component to import a module."""
    target = component_of(module)
    if SANDBOX in {target, component}:
        return component != target and component not in MAY_IMPORT_SANDBOX
    if target in {component, None}:
        return False
    same_package = str(target).partition(".")[0] == component.partition(".")[0]
    return LAYERS[str(target)] >= LAYERS[component] + same_package


def test_imports_point_to_lower_layers_and_the_sandbox_imports_only_itself() -> None:
    graph = import_graph(PACKAGE, for_types=False)
    assert {component_of(module) for module in graph} - {None, SANDBOX} <= set(LAYERS)
    assert [
        f"{importer} must not import {module}"
        for importer, modules in graph.items()
        if (component := component_of(importer)) is not None
        for module in modules
        if import_breaking_layers(component, module)
    ] == []


def test_machinery_is_in_the_packages_and_not_among_the_spiders() -> None:
    root = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert root == {
        *("settings", "items", "pipelines", "middlewares", "errors", "registry", "logs"),
        "runtime",  # also imported by the settings
        *("addon", "components"),  # the path of an add-on is public, and users read both modules
    }
    spiders = {path.stem for path in (PACKAGE / "spiders").glob("*.py")} - {"__init__"}
    platforms = {path.parent.name for path in (PACKAGE / "platforms").glob("*/__init__.py")}
    assert spiders == platforms | {"base"}
