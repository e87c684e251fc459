"""CRUSH's fixed-point logarithm as a table: `DRAW_COST[u]` = 2^48 - crush_ln(u) for all 16-bit draws u.

The placement of every Ceph cluster depends on every bit of these numbers. They are fixed for interoperability
and must not be improved by a formula. The coarse tables follow their formula; the fine one does not.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

# About 2^48 * log2(1 + k / 2^15): the numbers of `__LL_tbl` in Ceph's src/crush/crush_ln_table.h. Many
# deviate from their stated formula. Existing clusters were placed by them, so they stay as they are.
_FINE = """
0 2e2a60a00 70cb64ec5 9ef50ce67 cd1e588fd fb4747e9c 1296fdaf5e 1579811b58
185bfec2a1 1b3e76a552 1e20e8c380 2103551d43 23e5bbb2b2 26c81c83e4 29aa7790f0 2c8cccd9ed
2f6f1c5ef2 3251662017 3533aa1d71 3815e8571a 3af820cd26 3dda537fae 40bc806ec8 439ea79a8c
4680c90310 4962e4a86c 4c44fa8ab6 4f270aaa06 5209150672 54eb19a013 57cd1876fd 5aaf118b4a
5d9104dd0f 6072f26c64 6354da3960 6636bc441a 6918988ca8 6bfa6f1322 6edc3fd79f 71be0ada35
749fd01afd 77818f9a0c 7a6349577a 7d44fd535e 8026ab8dce 83085406e3 85e9f6beb2 88cb93b552
8bad2aeadc 8e8ebc5f65 9170481305 9451ce05d3 97334e37e5 9a14c8a953 9cf63d5a33 9fd7ac4a9d
a2b07f3458 a59a78ea6a a87bd699fb ab5d2e8970 ae3e80b8e3 b11fcd2869 b40113d818 b6e254c80a
b9c38ff853 bca4c5690c bf85f51a4a c2671f0c26 c548433eb6 c82961b211 cb0a7a664d cdeb8d5b82
d0cc9a91c8 d3ada20933 d68ea3c1dd d96f9fbbdb dc5095f744 df31867430 e2127132b5 e4f35632ea
e7d43574e6 eab50ef8c1 ed95e2be90 f076b0c66c f35779106a f6383b9ca2 f918f86b2a fbf9af7c1a
feda60cf88 101bb0c658c 1049bb23e3c 1077c5259af 10a5cecb7fc 10d3d81593a 1101e103d7f 112fe9964e4
115df1ccf7e 118bf9a7d64 11ba0126ead 11e8084a371 12160f11bc6 1244157d7c3 12721b8d77f 12a02141b10
12ce269a28e 12fc2b96e0f 132a3037daa 1358347d177 1386386698c 13b43bf45ff 13e23f266e9 141041fcc5e
143e4477678 146c469654b 149a48598f0 14c849c117c 14f64accf08 15244b7d1a9 15524bd1976 15804bca687
15ae4b678f2 15dc4aa90ce 160a498ee31 16384819134 166646479ec 1694441a870 16c24191cd7 16df6ca19bd
171e3b6d7aa 174c37d1e44 177a33dab1c 17a82f87e49 17d62ad97e2 180425cf7fe 182b07f3458 18601aa8c19
188e148c046 18bc0e13b52 18ea073fd52 1918001065d 1945f88568b 1973f09edf2 19a1e85ccaa 19cfdfbf2c8
19fdd6c6063 1a2bcd71593 1a59c3c126e 1a87b9b570b 1ab5af4e380 1ae3a48b7e5 1b11996d450 1b3f8df38d9
1b6d821e595 1b9b75eda9b 1bc96961803 1bf75c79de3 1c254f36c51 1c534198365 1c81339e336 1caf2548bd9
1cdd1697d67 1d0b078b7f5 1d38f823b9a 1d66e86086d 1d94d841e86 1dc2c7c7df9 1df0b6f26df 1e1ea5c194e
1e4c943555d 1e7a824db23 1ea8700aab5 1ed65d6c42b 1f044a7279d 1f32371d51f 1f60236ccca 1f8e0f60eb3
1fbbfaf9af3 1fe9e63719e 2017d1192cc 2045bb9fe94 2073a5cb50d 209c06e6212 20cf791026a 20fd622997c
212b07f3458 2159334a8d8 21871b52150 21b502fe517 21d6a73a78f 2210d144eee 223eb7df52c 226c9e1e713
229a84024bb 22c23679b4e 22f64eb83a8 2324338a51b 235218012a9 237ffc1cc69 23a2c3b0ea4 23d13ee805b
24035e9221f 243788faf25 24656b4e735 247ed646bfe 24c12ee3d98 24ef1025c1a 251cf10c799 25492644d65
2578b1c85ee 25a6919d8f0 25d13ee805b 26025036716 26296453882 265e0d62b53 268beb701f3 26b9c92265e
26d32f798a9 271583758eb 2743601673b 27713c5c3b0 279f1846e5f 27ccf3d6761 27e6580aecb 2828a9e44b3
28568462932 287bdbf5255 28b2384de4a 28d13ee805b 29035e9221f 29296453882 29699bdfb61 29902a37aab
29c54b864c9 29deabd1083 2a20f9c0bb5 2a4c7605d61 2a7bdbf5255 2a96056dafc 2ac3daf14ef 2af1b019eca
2b296453882 2b5d022d80f 2b8fa471cb3 2ba9012e713 2bd6d4901cc 2c04a796cf6 2c327a428a6 2c61a5e8f4c
2c8e1e891f6 2cbbf023fc2 2ce9c163e6e 2d179248e13 2d4562d2ec6 2d73330209d 2da102d63b0 2dced24f814
"""


def _compute_coarse_entry(k: int) -> tuple[int, int]:
    """Return (2^48 / (1 + k/128) rounded up, 2^48 * log2(1 + k/128) rounded down); the last log is short of
    1.
    """
    inverse = -(-(1 << 55) // (128 + k))
    if k == 128:
        return inverse, 0xFFFF00000000
    with localcontext(prec=50):
        return inverse, int((1 + Decimal(k) / 128).ln() / Decimal(2).ln() * (1 << 48))


def _build_draw_costs() -> npt.NDArray[np.int64]:
    fine = [int(word, 16) for word in _FINE.split()]
    coarse = [_compute_coarse_entry(k) for k in range(129)]
    costs = np.empty(1 << 16, dtype=np.int64)
    for drawn in range(1 << 16):
        x = drawn + 1
        shift = max(0, 16 - x.bit_length())
        x <<= shift
        inverse, log = coarse[(x >> 8) - 128]
        index = (x * inverse >> 48) & 0xFF
        costs[drawn] = (1 << 48) - ((15 - shift << 44) + (log + fine[index] >> 4))
    return costs


DRAW_COST: npt.NDArray[np.int64] = _build_draw_costs()
"""(65536,), >= 0: a straw's length is -DRAW_COST / weight; the longest straw wins."""
