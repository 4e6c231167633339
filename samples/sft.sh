#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fine-tunes a Hugging Face model as the last step of the ucllm recipe does: on conversations in either of its two forms,
# learning the answers alone, into a Hugging Face folder that has answered a question.
#
#   samples/sft.sh --model FOLDER --data FILE --output FOLDER [--form text|messages] [--question TEXT] [OPTION...]
#
#   --model FOLDER    what is fine-tuned: config.json, safetensors, tokenizer
#   --data FILE       JSONL; text: {"text": "### Human: ...### Assistant: ..."}, any number of turns;
#                     messages: {"messages": [{"role": "user", "content": "..."}, ...]}
#   --output FOLDER   the model afterwards, and FOLDER.data.* the packed set
#   --form FORM       text (the default) or messages, which the template guanaco makes the same text of
#   --eod-token PIECE what ends a text (</s>)
#   --seq-length N    longest example (2048)
#   --question TEXT   what the model must answer before FOLDER gets its name
#   OPTION...         further options of train run: they count before the recipe's, which are llm-jp-sft's
#
# The programs are those on PATH, or those that TOK, PREP and TRAIN name.
set -eu

fail() { code=$1; shift; printf 'sft.sh: %s\n' "$*" >&2; exit "$code"; }

model= data= output= form=text eod='</s>' length=2048 question=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) sed -n '3,19s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --model | --data | --output | --form | --eod-token | --seq-length | --question)
        [ $# -ge 2 ] || fail 2 "$1 needs a value"
        case $1 in
        --model) model=$2 ;; --data) data=$2 ;; --output) output=$2 ;; --form) form=$2 ;; --eod-token) eod=$2 ;;
        --seq-length) length=$2 ;; --question) question=$2 ;;
        esac
        shift 2 ;;
    --) shift; break ;;
    *) break ;;
    esac
done
[ -n "$model" ] && [ -n "$data" ] && [ -n "$output" ] || fail 2 "--model, --data and --output are needed (--help lists all)"
case $form in text | messages) ;; *) fail 2 "--form is text or messages, not $form" ;; esac
prep=${PREP:-prep} train=${TRAIN:-train}

# The marks are those of the seed: an answer is learnt up to the next question, its end of text with it. A text is encoded with
# what the tokenizer puts round one, and its end is said, since not every tokenizer says it itself.
marks="--response-template=### Assistant:"
if [ "$form" = text ]; then
    "$prep" sft --input "$data" --tokenizer "$model" --eod-token "$eod" --append-eod --packing none --seq-length "$length" \
        "$marks" --instruction-template '### Human:' --output-prefix "$output.data"
else
    "$prep" sft --input "$data" --tokenizer "$model" --eod-token "$eod" --template guanaco --append-eod --packing none \
        --seq-length "$length" --output-prefix "$output.data"
fi
[ -z "$question" ] || set -- --test-prompt-text "$question" --chat guanaco "$@"
"$train" run --recipe llm-jp-sft --load "$model" --tokenizer "$model" --eod-token "$eod" --data-path "$output.data" \
    --seq-length "$length" --export-hf "$output" "$@"
