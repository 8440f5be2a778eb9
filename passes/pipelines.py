"""Named pipelines: a name in a pipeline string that is not a pass stands for the text given here.

The order of passes is that of the levels: tensor -> kernel -> loop -> target.
"""

from __future__ import annotations

PIPELINES: dict[str, str] = {
    "cleanup": "canonicalize,cse",
    "tensor": "inline,canonicalize,cse,decompose,canonicalize,cse",
    "kernel": "tensor,lower-to-kernels,fuse,dce",
    "map-kernels": "kernel,plan,split-reduce,bufferize,lower-to-loops,map-gpu,expand-math,canonicalize,cse",
    "loop-opencl": "set-target{kind=opencl},map-kernels",
    "loop-cuda": "set-target{kind=cuda},map-kernels",
    "apply-schedule": "collapse,block-reduction,tile,pack,vectorize,unroll-jam,rebase",
    "loop-cpu": (
        "kernel,plan,split-reduce,bufferize,lower-to-loops,apply-schedule,expand-math,canonicalize,cse,promote,parallel"
    ),
}
"""Name -> pipeline text, which may use other names of this table."""
