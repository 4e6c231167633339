/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "base/core/bytes.h"

__extension__ typedef unsigned __int128 u128;

/*
 * The word w at index i of a tensor or file (8 bytes, little-endian, zeros where there are none)
 * adds w * unit[i % BLOCK] * factor(i / BLOCK) modulo 2^128. All multipliers are odd, so that no
 * change of one word is lost, and half a word adds its half: ranges may be cut anywhere.
 */
enum { BLOCK = 256, WORD = 8 };

/* mix(0) | 1, mix(1) | 1, ... */
/* clang-format off */
static const uint64_t unit[BLOCK] = {
    0xe220a8397b1dcdaf, 0x910a2dec89025cc1, 0x975835de1c9756cf, 0x1d0b14e4db018fed,
    0x6e73e372e2338acb, 0x63033b0ca389c35b, 0xbd64a5d9adefe001, 0x63cbe1e459320dd7,
    0x9e5651b0ef953637, 0xaeaf52febe706065, 0x088712be8a582fcb, 0x50f5647d2380309d,
    0x943ff9fc99de8f03, 0xc4ca37b7f8ad8aff, 0x6aa9d61435dbe63f, 0x875b9307abf55005,
    0x5de186dcba779207, 0x808475f02ee37363, 0x1120b3d00955f033, 0xbc4075f2ef431a45,
    0x362259904816818d, 0x06ca0a95b7e825c7, 0xc80de0f9d4d60e0b, 0xe8d7da001b0181d7,
    0xaac8c00000a81e45, 0xa208c12cf0c7b709, 0xc3b7f4e80f554ddb, 0x974e35325981068b,
    0x905c768ad49f146d, 0xbb7b49ab8801cf71, 0xa8ee577af2720dcf, 0xd7599677879feaeb,
    0xeaeb7f27b54e2401, 0x2c0e0fedbe2218a9, 0x89242d2dd9d4a40d, 0x4d5cb825dfaab05b,
    0xe9b316290724ba1b, 0xc7ab56057c8da907, 0xeb01cfaf16b47eb1, 0xce6a57a6e3ccdeed,
    0x369eae0b0ca19113, 0x118e846ea93bc949, 0xbdd732262feb6e95, 0xba69ec90eb4fef89,
    0xfb452912299a5453, 0xf7e9f3f88cc04ad7, 0xbaee56f32e223007, 0x7bb3c45c597cdb85,
    0x040a2076f607ff23, 0x1c4a97a6edc2a959, 0xbb0802c412d354cb, 0x5ddad83b4e874069,
    0xf9b44ecd07b4404b, 0xc85e84f460206f77, 0xbc46b610e9d3f375, 0x6e1351b2349f331d,
    0x9d189ecfff7b2147, 0x36057413850f2a31, 0x7daf7bd7b0085fd3, 0x9691c38b30d2b83d,
    0xbb0af0f391997767, 0x417ffd1301eaa631, 0x322f69afa8a70beb, 0x8c741196acc47e35,
    0xd6967248fbe68cc3, 0x3706970b052f16b1, 0x2c1c719d2c17b759, 0xe5aeaa7575ad84c5,
    0x051c9d6dbc0a79cb, 0x5351ebfc8b302867, 0x6707e8333343cb0f, 0xd0b1b125e467daaf,
    0x8e64bfa85c308c9b, 0xd08f003850439a4b, 0x49f64e7a9b76929b, 0x8b425770edf587a5,
    0xe5f50758d870dbb3, 0x6258cbe07c1ff081, 0x5709ba31dfe2649d, 0x8795cc503eda4f23,
    0xbd9e8145f2fa917b, 0x9192105c8367ccf5, 0x0de7f33488454a0d, 0x0981d32ae0dff915,
    0xcf64624732260343, 0x6e159ae8300518f9, 0xd34711b5dbaac9b5, 0xf4c4962e561469c3,
    0x3d9b64451af7f223, 0xd0f8252577628d87, 0xef96e022e649cec7, 0xf85507da4c69f9d3,
    0x9d589011dcd0f76f, 0xfb43e48309ca2db7, 0xf5d716b2f98bf127, 0xfb761138e1e0a78d,
    0x6232969000262121, 0x4f5da978776a9db1, 0xf0eea8c8a0607d15, 0x42f3a9364c476be3,
    0x23259b94f13cf545, 0xd1024a5fad64d717, 0x11402f2430284f2d, 0x19e7518defa0f0b1,
    0x47784b983a872ed7, 0xbba2aa66f998b193, 0x225ac33c6d679b93, 0x230275d791e422cd,
    0xcd19f198025ce715, 0xb32f0f46fbfbccdf, 0x9089f05fbf88f8e7, 0xf9364c1f89270349,
    0x738032f6d1fb2e3b, 0xaea0b05615e97b6d, 0x66bbe75c01e83091, 0x4eff0b08f92f0f6d,
    0xdabe0bd2457bff71, 0x4b1bbcd2f7f4f4bf, 0x730543a4c9f46231, 0x2a8e80d0bea7e5b7,
    0x02f590758a6d2937, 0x28bf8a80bc3eab53, 0x1882c195e4347c75, 0xb4dc9bd462de412b,
    0xd1b89df7e5b467f9, 0xca87cb278bbed783, 0xb41d1166f0fa7f73, 0x3fadb6bde9285e99,
    0xabf42acc138fedbf, 0x96403e918bdbd015, 0x740b401493c72543, 0x8e48a85c3260d9d1,
    0xb24ce50ea345fe83, 0x03ef5b87efea98e9, 0xe85c7afb627bf59f, 0x8d9bd6ca69c6b7f3,
    0x3d3f9d6d24164931, 0x6a0c02bb9152575b, 0xad4f6e1945b4c6bf, 0x325c64dbdc5bbde3,
    0xe6877908a812dea1, 0xb6e5f089ef37d1dd, 0xaafb638a996df051, 0xaab6e406556a6437,
    0x6855ce5643eec109, 0x596cb256d7ae9dd7, 0x35e76b2eb1a96a71, 0x3d8af2aebb01ee15,
    0x23a09496ea34e97f, 0x2ac8b3c337332481, 0xf8c632ff416764a9, 0xb2d51ec8c64e3969,
    0xf40299ce8c16ea33, 0x4d1c44a4856af5a5, 0x90ef8da332b2a7e7, 0xfba1c308dec50481,
    0x96a2c66144306401, 0x746c9d6c2485f667, 0x3c59c8e067cb9789, 0x653c0bfecead92ab,
    0x911b6c48e11c7f01, 0x98d2848e685e5be7, 0x13fb6953ab52fe41, 0xc565002c28b5b3f5,
    0xc09b8405b020a231, 0xfbe4b4262f00e647, 0xc5c137f9c4107517, 0xb08a3cc9efb60979,
    0x5bc7c7d9c168bf6d, 0xeb9f627fe00ea9ed, 0x4f3c532b3a1decbb, 0xca23f2d88d65a603,
    0x57c4944fbf781145, 0x049f1a060b263a13, 0x6847cd16adb241e1, 0xbb095a08560e6dd1,
    0x68b4754b9c83e91f, 0x73d34e79ab6661bd, 0x97656cc335c029f5, 0x06cb111d65a5c1bf,
    0xae6f10cfefb4ae25, 0x28bdf54bc25a42b5, 0x7f8f57525c9d03d5, 0x3b7a1aa8445aa94f,
    0x219f5093119cdcf7, 0x3280126b73eee4e7, 0x02dc423fe038d769, 0x8108096be4efdfdb,
    0x8f86331cd7693667, 0xd04d1b94b2e33d31, 0x13e6fb952b8ea245, 0xfd87a3030fcf5e15,
    0xf7bb2b266558a3d9, 0x2871f5925412e4cd, 0xb6eeecbe4105bbb5, 0x5bd22369c07a0949,
    0x01165b69a81b14c7, 0xc4079edf0591a9f9, 0x92a006731b9a5047, 0x174a42cc14886cb5,
    0x3f13f4e3c8c592c9, 0xa7a6d3b21ecb97ed, 0xe699e345278de899, 0xb5145f14d921c667,
    0x172b3485e05703ad, 0xa92d4e8a72a6344d, 0x6bc265fe18354c65, 0x82770a37d755ceeb,
    0x4e04e2c49ec8dad1, 0xa6b897d8d30eac81, 0xe8cb9afac767b109, 0xed3e2b670029c22b,
    0x209c26f8211bd185, 0x96519dd7d49df4af, 0x38e7c4b2e028a229, 0xe65f073cd2135179,
    0xc9a246f21baecb69, 0xd3a8d03c36640b2f, 0x36491d4aa365d567, 0xdda4f3b0b9e43fd1,
    0x08400fcc2ffa9315, 0x64b1e39568402827, 0x86e6b7951c608613, 0xeaaf4fbac1d16893,
    0x23ad6bad6f5c8c81, 0x8eaff63463a306f7, 0x9c52a3eb4fcdc34d, 0x70ea2dfd1920444d,
    0x84dcc1c7b6773c57, 0x45f7d13d91b9c52f, 0xaf30118ddcc3ca47, 0x6931b9e1122a75b3,
    0x6bb5ba8e4c5a049f, 0x2eb67620ec65912f, 0xa3f6365bd15b8991, 0x5fa4f116a892767b,
    0x0f56e2e9b5aa2e5b, 0xf0afa51599d0c811, 0xbb5fe8e953e15117, 0xb7646777da99a215,
    0xbeab1149a28edcdf, 0xe9966f076d4f365d, 0x71f1f1d4ce980385, 0x3cd2167a91a41947,
    0x679737c796055769, 0x437d563c56393be5, 0x5564a7f784a78405, 0x6ba8674fe24001fb,
    0xb6986e3027ef2bf5, 0xe1efefb5d14f69eb, 0xd257429b2b5ffe4d, 0x7e5423c80b38522d,
    0x4997cf2cbecdfc4f, 0x31d6e6002586bf15, 0xda2e5ee5a7779c01, 0x338c507146283fb5,
};
/* clang-format on */

/* The output function of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    uint64_t z = x + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static u128 factor(uint64_t block)
{
    return (u128)mix(BLOCK + 1 + 2 * block) << 64 | mix(BLOCK + 2 * block) | 1;
}

/* n words from the index `first` of a block on. */
static u128 sum_words(const unsigned char *p, size_t first, size_t n)
{
    u128 a = 0, b = 0;
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        a += (u128)load_u64(p + i * WORD) * unit[first + i];
        b += (u128)load_u64(p + (i + 1) * WORD) * unit[first + i + 1];
    }
    if (i < n)
        a += (u128)load_u64(p + i * WORD) * unit[first + i];
    return a + b;
}

static void join(struct fingerprint *f, u128 sum)
{
    sum += (u128)f->high << 64 | f->low;
    *f = (struct fingerprint){(uint64_t)sum, (uint64_t)(sum >> 64)};
}

/* Up to the next word, or all of n bytes: how many. */
static size_t add_part(struct fingerprint *f, uint64_t at, const unsigned char *p, size_t n)
{
    unsigned char word[WORD] = {0};
    size_t from = at % WORD, k = WORD - from < n ? WORD - from : n;
    memcpy(word + from, p, k);
    join(f, sum_words(word, at / WORD % BLOCK, 1) * factor(at / WORD / BLOCK));
    return k;
}

void fingerprint_add(struct fingerprint *f, uint64_t at, const void *p, size_t n)
{
    const unsigned char *s = p;
    if (n && at % WORD) {
        size_t k = add_part(f, at, s, n);
        at += k;
        s += k;
        n -= k;
    }
    u128 sum = 0;
    while (n >= WORD) {
        uint64_t index = at / WORD;
        size_t first = index % BLOCK, k = BLOCK - first < n / WORD ? BLOCK - first : n / WORD;
        sum += sum_words(s, first, k) * factor(index / BLOCK);
        at += k * WORD;
        s += k * WORD;
        n -= k * WORD;
    }
    join(f, sum);
    if (n)
        add_part(f, at, s, n);
}

void fingerprint_join(struct fingerprint *f, struct fingerprint other)
{
    join(f, (u128)other.high << 64 | other.low);
}

void fingerprint_add_box(struct fingerprint *f, int64_t columns, struct box_mem m)
{
    size_t size = dtype_size(m.dtype);
    struct box b = m.box;
    int64_t rows = b.count[0], run = b.count[1];
    if (run == columns && m.stride == columns) { /* whole rows: one run */
        run *= rows;
        rows = run ? 1 : 0;
    }
    for (int64_t r = 0; r < rows; r++) {
        uint64_t at = (uint64_t)((b.begin[0] + r) * columns + b.begin[1]) * size;
        fingerprint_add(f, at, (const char *)m.data + (size_t)(r * m.stride) * size,
                        (size_t)run * size);
    }
}

bool fingerprint_equal(struct fingerprint a, struct fingerprint b)
{
    return a.low == b.low && a.high == b.high;
}

void fingerprint_text(struct fingerprint f, char ret[FINGERPRINT_TEXT])
{
    snprintf(ret, FINGERPRINT_TEXT, "%016llx%016llx", (unsigned long long)f.high,
             (unsigned long long)f.low);
}

bool fingerprint_parse(const char *text, struct fingerprint *ret)
{
    uint64_t half[2] = {0};
    if (strlen(text) != FINGERPRINT_TEXT - 1)
        return false;
    for (int i = 0; i < FINGERPRINT_TEXT - 1; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *d = strchr(digits, text[i]);
        if (!d)
            return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)(d - digits);
    }
    *ret = (struct fingerprint){half[1], half[0]};
    return true;
}
