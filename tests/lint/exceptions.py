# SPDX-License-Identifier: Apache-2.0
"""What the limits of style.py and names.py let pass, each by name and with its reason.

A generated file is marked in .gitattributes instead. A row that nothing needs any more fails too.
"""

# PATH:FUNCTION, for more than style.FUNCTION_LINES
LONG_FUNCTIONS = {
}

# PATH, for more than style.FILE_LINES
LONG_FILES = {
}

# PATH:FUNCTION, for more than style.PARAMETERS
MANY_PARAMETERS = {
    "tok/cache/cache.c:word_cache_encode": "hot: called per pre-token, arguments stay in registers",
    "tok/chat/chat.c:chat_encode": "three outputs of one conversation",
    "tok/learn/sp/lattice.c:learn_lattice_way": "hot: called per piece in each pruning step",
    "tok/pipeline/open_text.c:pipe_encode_open": "an entry of the table of engines",
    "tok/pipeline/pipeline.c:encode_between": "hot: called per text between special tokens",
    "tok/pipeline/pipeline.c:encode_plain": "hot: called per text between special tokens",
    "tok/pipeline/pipeline.c:encode_raw": "an entry of the table of engines",
    "tok/pipeline/pipeline.c:pipe_encode_run": "an entry of the table of engines",
    "tok/pipeline/segment.c:find_many": "hot: one call per block of text",
    "tok/pipeline/segment.c:segments_encode": "hot: one call per block of text",
    "tok/sp/offsets.c:encode_part": "hot: called per segment",
    "tok/sp/offsets.c:find_part": "hot: called per segment",
    "tok/sp/offsets.c:say_part": "hot: called per segment",
    "tok/sp/segment.c:find_many": "hot: one call per block of text",
    "tok/sp/encode.c:sp_encode_between": "hot: called per text between special tokens",
    "tok/sp/encode.c:sp_encode_part": "an entry of the table of engines",
    "tok/sp/encode.c:sp_nbest": "an entry of the table of engines",
    "tok/sp/encode.c:sp_put_text": "hot: called per segment",
    "tok/sp/encode.c:sp_take": "an entry of the table of engines",
    "tok/sp/sp_cxx.cc:sp_lib_train": "options, seed, callback and result, across the border to C++",
    "tok/sp/unigram_sample.c:unigram_sample_nbest": "hot: called per segment",
    "tok/tokenizer/offsets.c:tok_encode_offsets": "public: two outputs, each with its length",
    "tok/tokenizer/parallel.c:encode_split": "the public function's arguments",
    "tok/tokenizer/parallel.c:tok_encode_part_parallel":
        "public: a text, where it stands, two outputs",
    "train/ckpt/st_out.c:st_out_begin": "a file, its place, and what its header says",
    "train/ops/cpu/fast_attention.h:drop_lanes": "hot: inlined per row of scores",
    "train/ops/cpu/fast_norm.c:columns_step": "hot: inlined per block of columns",
    "train/ops/cuda/attention.cu:slope_of": "hot: inlined in a kernel",
    "train/ops/cuda/embed.cu:add_rest": "hot: inlined in a kernel",
    "train/ops/cuda/flash.cuh:write_rows": "hot: inlined in a kernel",
    "train/ops/cuda/flash_bwd.cu:slopes": "hot: inlined in a kernel",
    "train/ops/cuda/flash_bwd.cu:slopes_turned": "hot: inlined in a kernel",
    "train/ops/cuda/flash_wgmma_bwd.cu:slopes": "hot: inlined in a kernel",
    "train/ops/cuda/gemm/lt.c:lt_run": "cublasLt's matrices, layouts and workspace",
    "train/ops/cuda/norm_bwd.cu:pass_on": "hot: inlined in a kernel",
    "train/ops/cuda/rope.cu:rope": "a kernel: arguments are the launch's constants",
}

# PATH:FUNCTION, for a search in the text of an error
SEARCHED_ERRORS = {
    "tok/edit/recipe_save.c:name_final": "writes final names for temporary ones, decides nothing",
    "tok/learn/sp/library_trainer.c:reword": "the library's own words, beside which it says nothing",
}

# HEADER: the files of its folder that implement it and have no header of their own; "*" matches.
SHARED_HEADERS = {
    # programs: a verb is one function, declared with the others
    "convert/cli.h": "verb_*.c",
    "prep/cmd.h": "cmd_*.c",
    "prep/options.h": "options_verbs.c",
    "tok/cmd.h": "cmd_*.c",
    "train/job/job.h": "data.c export.c layout.c prepare.c settings.c tokenizer.c",
    "train/verbs.h": "verb_*.c",

    # the ops table: a file is an op family in one tier, its functions are entries of the table
    "train/ops/cpu/cpu.h": "ops_cpu.c",
    "train/ops/cpu/fast.h": "fast_*.c",
    "train/ops/cpu/ref.h": "ref_*.c",
    "train/ops/cuda/sdpa.h": "sdpa_none.c",
    "train/ops/ops.h": "ops_attention.c ops_cost.c ops_forms.c",

    # tables of kernels: the twins of one level of base/core/simd.h
    "tok/bpe/kernels.h": "split_ascii_avx512.c split_point4_avx512.c",
    "tok/cache/kernels.h": "local_cache_avx512.c packed_ids_avx512.c",
    "tok/text/kernels.h": "aho_corasick_avx512.c byte_pair_search_avx2.c id_bytes_avx512.c",

    # one thing, too long for one file, behind one internal header
    "base/cli/opt_row.h": "opt_*.c",
    "prep/build/state.h": "keep.c put.c split.c",
    "prep/encode/encoder_internal.h": "record.c record_long.c",
    "tok/bpe/pair_table.h": "merge_avx512.c",
    "tok/edit/recipe_json.h": "write_hf.c",
    "tok/learn/sp/sp.h": "chars.c order.c",
    "tok/pipeline/offsets.h": "aligned_normalize.c model_offsets.c",
    "tok/pipeline/pipeline_internal.h": "decoder.c model.c model_symbols.c normalize.c premerge.c "
                                        "pretokenize.c special_place.c unigram.c wordpiece.c",
    "tok/pipeline/segment_internal.h": "segment.c segment_tables.c",
    "tok/pretok/scan_block.h": "scan_fast_cased.c scan_fast_splits.c",
    "tok/pretok/scan_class.h": "scan_plain.c",
    "tok/sp/kernels.h": "unigram_avx512.c",
    "tok/sp/sp_internal.h": "encode.c",
    "tok/sp/unigram.h": "unigram_nbest.c unigram_sample.c",
    "tok/sp/unigram_internal.h": "unigram_lanes.c unigram_segment.c",
    "tok/tokenizer/tokenizer_work.h": "offsets.c parallel.c window.c",

    # a public header with more than one file behind it: the caller need not know which
    "base/format/json.h": "json_write.c",
    "dataset/index/maps.h": "maps_file.c",
    "dataset/sample/batch.h": "loader.c",
    "dataset/shard/shard.h": "check.c",
    "dataset/shard/write.h": "copy.c",
    "dataset/tools/foreign.h": "foreign_open.c",
    "prep/sentence/sentences.h": "language.c",
    "tok/chat/chat.h": "stop.c",
    "tok/chat/chat_internal.h": "encode.c probe.c",
    "tok/edit/recipe.h": "recipe_save.c recipe_sp.c recipe_ties.c recipe_to.c recipe_to_sp.c write_lists.c "
                         "write_sp.c",
    "tok/edit/recipe_edit.h": "recipe_lists.c recipe_prune.c recipe_rows.c",
    "tok/formats/hf.h": "hf_*.c",
    "tok/formats/readers.h": "bert.c gpt2.c null.c tekken.c whitespace.c",
    "tok/jinja/builtins.h": "filters.c filters_items.c functions.c tests.c",
    "tok/jinja/parse.h": "parse_expr.c",
    "tok/learn/out.h": "json.c",
    "tok/pipeline/open_text.h": "open_normalize.c open_split.c",
    "tok/pipeline/pipeline.h": "spec.c",
    "tok/pretok/regex.h": "regex_spell.c",
    "tok/sp/model.h": "model_check.c",
    "tok/tokenizer/tokenizer.h": "padding.c",
    "tok/unicode/unicode.h": "break.c text.c",
    "train/ckpt/ckpt.h": "check.c manifest_write.c read.c scan.c st_out.c write.c",
    "convert/copy/copy.h": "copy_*.c",
    "train/comm/comm.h": "comm_self.c",
    "convert/hf/hf_adapter.h": "hf_adapter_config.c",
    "convert/hf/hf_export.h": "hf_export_run.c",
    "convert/hf/hf_folder_internal.h": "hf_meta.c",
    "convert/torch/pt_view.h": "pt_check.c",
    "train/model/model.h": "acts.c block.c head.c stream.c weights.c",
    "train/spec/options.h": "presets.c",
    "train/spec/family.h": "family_*.c",
    "train/spec/hf.h": "hf_*.c",
    "train/spec/spec.h": "spec_check.c",
    "train/tensor/box.h": "cast.c",
    "train/tensor/dev.h": "host/dev_host.c",
}

# Headers that only their module (and its tests) may include, beside all *_internal.h.
INTERNAL = {
    "base/cli/opt_row.h", "prep/build/state.h", "prep/cmd.h", "tok/bpe/pair_table.h", "tok/cmd.h",
    "tok/learn/sp/sp.h", "tok/pipeline/offsets.h", "tok/pretok/scan_block.h",
    "tok/pretok/scan_class.h", "tok/tokenizer/tokenizer_work.h",
    "train/ops/cpu/fast.h", "train/ops/cpu/ref.h", "train/spec/family.h",
}

# PATH:FUNCTION of public functions that tests alone call, and what they are there for.
TESTED_ALONE = {
    # a file's bytes in memory, for the fuzz targets
    "convert/gguf/gguf_read.c:gguf_parse": "fuzz_gguf",
    "convert/torch/pt.c:pt_parse": "fuzz_pt",
    "train/ckpt/safetensors.c:st_parse": "fuzz_safetensors",

    # the plain twin of code for larger processors, beside it in one test
    "tok/cache/cache.c:word_cache_plain": "turns the AVX-512 front off",
    "tok/sp/unigram.c:unigram_state_plain": "turns the AVX-512 lanes off",
    "tok/text/id_bytes.c:id_bytes_append_by": "by the code of one level",

    # ranks that are threads, which tests compare with processes over sockets and MPI
    "train/comm/comm_threads.c:comm_threads_create": "the thread communicator",
    "train/comm/comm_threads.c:comm_threads_destroy": "the thread communicator",
    "train/comm/comm_threads.c:comm_threads_open": "the thread communicator",
    "train/comm/comm.c:comm_barrier": "where ranks of a test meet; every backend has it",

    # what no output shows
    "tok/chat/chat.c:chat_text": "the text of a template, for comparison with Jinja's",
    "tok/pretok/scan.c:scan_spelling": "each pattern that is scanned by hand, for its regex",
    "tok/sp/segment.c:sp_native_waiting": "the bound of what a stream holds back",
    "tok/cache/cache.c:word_cache_misses": "which words the model was asked for",
    "train/watch/copies.c:copies_bytes": "that shares of one rank alone are not read",

    # in one call what a run does in steps, which verifies tensors while it loads them
    "train/ckpt/scan.c:ckpt_open_iteration": "one that is intact",
    "train/ckpt/scan.c:ckpt_open_newest": "the newest that is intact",
}
