/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/families.h"

#include <stddef.h>

#define WORD "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MARK "[^\\r\\n\\p{L}\\p{N}]?"
#define ENDING "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SIGNS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"

const struct pretok_family pretok_families[] = {
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     true, false, PRETOK_DIGITS_ANY},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     false, false, PRETOK_DIGITS_ANY},
    {"llama3", WORD "|" MARK "\\p{L}+|\\p{N}{1,3}" SIGNS ENDING, false, false, PRETOK_DIGITS_ANY},
    {"qwen2", WORD "|" MARK "\\p{L}+|\\p{N}" SIGNS ENDING, false, true, PRETOK_DIGITS_ANY},
    {"o200k",
     MARK UPPER "*" LOWER "+" WORD "?|" MARK UPPER "+" LOWER "*" WORD
                "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" ENDING,
     false, false, PRETOK_DIGITS_ANY},
    {.name = NULL},
};
