#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which module includes which, judged by the table of ARCHITECTURE.md, and what the programs link.

    edges.py ROOT [BUILD]

A file belongs to the module with the longest path that leads to it. "*" in a row's last cell: the
module may include any other.
"""

import os
import re
import subprocess
import sys

import house

CUDA_HEADER = re.compile(r"(cuda|cublas|cudnn|nccl|curand|cusparse|cusolver|nvtx|nvml|cooperative_"
                         r"groups|cub/|thrust/|cutlass)")
MPI_HEADER = re.compile(r"mpi(f|xx)?\.h(pp)?$|mpi-ext\.h$|openmpi/")
FOREIGN_LIBRARY = re.compile(r"lib(cuda|cudart|cublas|cudnn|nccl|nv|cufft|curand|mpi|open-rte|open-"
                             r"pal|pmix|openblas|blas|cblas|lapack)")
LEAN_PROGRAMS = ("tok", "prep", "convert")

MODULE_FILES = 40
LARGE_MODULES = ("tests",)  # one row for all of the tests


def modules(root):
    """{module: modules that it may include}, from the table's rows."""
    table = {}
    for line in house.read(root, "ARCHITECTURE.md").splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        name = re.fullmatch(r"`([^`]+)`(?: \(to come\))?", cells[0])
        if line.startswith("| `") and len(cells) == 3 and name:
            table[name[1]] = {c.strip() for c in cells[2].split(",") if c.strip()}
    return {m: set(table) - {m} if may == {"*"} else may for m, may in table.items()}


def to_come(root):
    """The modules of the table that have no folder yet."""
    return set(re.findall(r"^\| `([^`]+)` \(to come\) \|", house.read(root, "ARCHITECTURE.md"), re.M))


def module_of(path, table):
    return max((r for r in table if path.startswith(r + "/")), key=len, default=None)


def includes(root):
    """(file, line number, header, in quotes?) of each include line."""
    for path in house.files(root, house.C_KINDS + house.CXX_KINDS):
        text = house.without_comments(house.read(root, path))
        for number, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>|(.*))', line)
            if m:
                yield path, number, m[1] or m[2] or m[3], m[1] is not None


def generated(root):
    """Headers that the build writes beside the objects; they have no module."""
    if not os.path.exists(os.path.join(root, "meson.build")):
        return []
    return re.findall(r"configure_file\(\s*output: '(.*?\.h)'", house.read(root, "meson.build"))


def table_is_sound(root):
    table = modules(root)
    wrong = [] if table else ["ARCHITECTURE.md: no table of modules was found"]
    for module, may in table.items():
        wrong += [f"ARCHITECTURE.md: module {module} may include {m}, which is not a module"
                  for m in sorted(may - table.keys())]
        there, later = os.path.isdir(os.path.join(root, module)), module in to_come(root)
        if later and there:
            wrong.append(f"ARCHITECTURE.md: module {module} is not to come, it has a folder")
        elif not later and not there:
            wrong.append(f"ARCHITECTURE.md: module {module} has no folder")
    return wrong


def modules_have_a_readme(root):
    return [f"{module}: has no README.md" for module in modules(root)
            if os.path.isdir(os.path.join(root, module))
            and not os.path.isfile(os.path.join(root, module, "README.md"))]


def modules_have_no_cycle(root):
    """Each module that can be reached from itself is named once, with the way round."""
    table, wrong, done = modules(root), [], set()

    def visit(module, way):
        if module in way:
            cycle = way[way.index(module):]
            if done.isdisjoint(cycle):
                wrong.append("ARCHITECTURE.md: modules include each other in a cycle: "
                             + " -> ".join(cycle + [module]))
            done.update(cycle)
        elif module not in done:
            for other in sorted(table.get(module, ())):
                visit(other, way + [module])
            done.add(module)

    for module in sorted(table):
        visit(module, [])
    return wrong


def files_of_modules(root):
    """{module: how many files it has}, without those that may be large."""
    table, count = modules(root), {}
    for path in house.files(root, house.C_KINDS + house.CXX_KINDS):
        module = module_of(path, table)
        count[module] = count.get(module, 0) + 1
    return {m: n for m, n in count.items() if m and m not in LARGE_MODULES}


def modules_are_small(root):
    return [f"{module}: {n} files, {MODULE_FILES} are allowed"
            for module, n in sorted(files_of_modules(root).items()) if n > MODULE_FILES]


def every_file_has_a_module(root):
    table = modules(root)
    return [f"{p}: is not in a module of ARCHITECTURE.md's table"
            for p in house.files(root, house.C_KINDS + house.CXX_KINDS) if not module_of(p, table)]


def includes_keep_to_the_table(root):
    table, made, wrong = modules(root), generated(root), []
    for path, number, header, quoted in includes(root):
        place = f"{path}:{number}:"
        inside = os.path.isfile(os.path.join(root, header))
        if quoted and header in made:
            continue
        if quoted and (not inside or os.path.normpath(header) != header):
            wrong.append(f'{place} "{header}" is not a file, seen from the root of the tree')
        elif not quoted and inside:
            wrong.append(f'{place} <{header}> is ours: it is included with "..."')
        elif quoted:
            here, there = module_of(path, table), module_of(header, table)
            if here != there and there not in table.get(here, set()):
                wrong.append(f"{place} module {here} may not include {there} ({header})")
    return wrong


def cuda_headers_stay_in_cuda(root):
    return [f"{path}:{number}: <{header}> outside of a path with cuda or nccl in it"
            for path, number, header, quoted in includes(root)
            if not quoted and CUDA_HEADER.match(header)
            and not re.search("cuda|nccl", os.path.dirname(path))]


def mpi_headers_stay_in_comm(root):
    return [f"{path}:{number}: <{header}> outside of train/comm"
            for path, number, header, quoted in includes(root)
            if MPI_HEADER.match(header) and not path.startswith("train/comm/")]


def cxx_stays_in_wrappers(root):
    return [f"{p}: C++ is allowed in *_cxx.cc only" for p in house.files(root, house.CXX_KINDS)
            if not p.endswith("_cxx.cc")]


def needed(program):
    out = subprocess.run([house.tool("readelf"), "-d", program], check=True, capture_output=True,
                         text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def lean_programs_link_little(root, build):
    if not build:
        raise house.Skip("no build folder was named")
    wrong, seen = [], 0
    for name in LEAN_PROGRAMS:
        program = os.path.join(build, name, name)
        if os.path.exists(program):
            seen += 1
            wrong += [f"{name}: needs {library} to start" for library in needed(program)
                      if FOREIGN_LIBRARY.match(library)]
        elif os.path.exists(os.path.join(root, name, "main.c")):
            wrong.append(f"{name}: has a main.c, but {program} was not built")
    if not seen and not wrong:
        raise house.Skip("none of " + ", ".join(LEAN_PROGRAMS) + " has a main.c yet")
    return wrong


def main(root, build=None):
    tree_rules = [modules_are_small, table_is_sound, modules_have_a_readme, modules_have_no_cycle, every_file_has_a_module,
                  includes_keep_to_the_table, cuda_headers_stay_in_cuda, mpi_headers_stay_in_comm,
                  cxx_stays_in_wrappers]
    rules = [(r.__name__, lambda r=r: r(root)) for r in tree_rules]
    rules.append(("lean_programs_link_little", lambda: lean_programs_link_little(root, build)))
    print("#", house.spread("modules, by files", files_of_modules(root).values()))
    return house.report(rules)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
