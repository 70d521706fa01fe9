/* SPDX-License-Identifier: Apache-2.0
 *
 * test_jsonl.c: documents from JSON lines: their ids, the ids that have a loss, refusals; and token files made from
 * them, which give the same batches.
 */
#include "batch/data.h"
#include "batch/tokenize.h"
#include "rows_fixture.h"
#include "text/chat.h"

static const struct {
    const char *golden, *lines, *want;
} documents[] = {
    /* The first token of a document is no target. */
    {"qwen2", "{\"text\": \"!a b\"}\n{\"text\": \"?\", \"other\": 1}\n",
     "!{a b<|endoftext|>}?{<|endoftext|>}"},
    {"llama3", "{\"text\": \"ab\"}\n\n  \t\n{\"text\": \"\"}",
     "<|begin_of_text|>{ab<|end_of_text|>}"
     "<|begin_of_text|>{<|end_of_text|>}"},
    {"qwen2", "{\"prompt\": \"Why? \", \"completion\": \"So.\", \"text\": null}",
     "Why? {So.<|endoftext|>}"},
    {"qwen2", "{\"prompt\": \"\\u00e9\\n\", \"completion\": \"a\\u0000b\"}\r\n",
     "\xc3\xa9\n{ab<|endoftext|>}"}, /* NUL is printed as nothing */
    {"qwen2",
     "{\"messages\": [{\"role\": \"system\", \"content\": \"Be.\"}, {\"role\": \"user\", "
     "\"content\": \" hi \"}, {\"role\": \"assistant\", \"content\": \" yo \"}, {\"role\": "
     "\"user\", \"content\": \"?\"}, {\"role\": \"assistant\", \"content\": \"\"}]}",
     "<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\n hi <|im_end|>\n<|im_start|>assistant\n"
     "{ yo <|im_end|>}\n<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n{<|im_end|>}\n"
     "<|endoftext|>"},
    {"llama3",
     "{\"messages\": [{\"role\": \"user\", \"content\": \" hi\\n\"}, {\"role\": \"assistant\", "
     "\"content\": \" yo \"}], \"prompt\": \"x\"}",
     "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n{yo<|eot_id|>}<|end_of_text|>"},
    /* The template's trim removes the characters that Python's str.strip() removes. */
    {"llama3",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"\\u3000\\u001c a\\u0085b\\u00a0\"}, "
     "{\"role\": "
     "\"assistant\", \"content\": \"\\u200byo\\u2029\\u000b\"}]}",
     "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\na\xc2\x85"
     "b<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{\xe2\x80\x8byo<|eot_id|>}<|end_"
     "of_text|>"},
    /* Fields that are not used may exceed any type. */
    {"qwen2",
     "{\"id\": 18446744073709551615, \"text\": \"a\", \"x\": [-9e999, 1e-999, "
     "123456789012345678901234567890, "
     "\"1e999\"]}",
     "a{<|endoftext|>}"},
    {"qwen2", "\xef\xbb\xbf{\"text\": \"ab\"}\n{\"text\": \"\xef\xbb\xbf\"}",
     "ab{<|endoftext|>}\xef{\xbb\xbf<|endoftext|>}"},
    {"qwen2", "\xef\xbb\xbf\n{\"text\": \"ab\"}\n\xef\xbb\xbf{\"text\": \"?\"}",
     "ab{<|endoftext|>}?{<|endoftext|>}"},
    /* Lone surrogates, surrogates in the wrong order and before other escapes; a backslash before a u. */
    {"qwen2", "{\"prompt\": \"a\", \"completion\": \"\\ud800b\\udc00\\ud83d\\n\"}",
     "a{\xef\xbf\xbd"
     "b\xef\xbf\xbd\xef\xbf\xbd\n<|endoftext|>}"},
    {"qwen2", "{\"prompt\": \"\\uD83D\\uDE00\", \"completion\": \"\\udbff\\\\ud800\\\"\"}",
     "\xf0\x9f\x98\x80{\xef\xbf\xbd\\ud800\"<|endoftext|>}"},
};
enum { DOCUMENTS = sizeof documents / sizeof *documents };

static void documents_of_json_lines_are_read(void **state)
{
    (void)state;
    char text[2048];
    for (int i = 0; i < DOCUMENTS; i++) {
        struct tokenizer t = open_golden(documents[i].golden, NULL, NULL);
        write_text(at("d.jsonl"), documents[i].lines);
        assert_string_equal(as_text(at("d.jsonl"), &plain, &t, text, sizeof text),
                            documents[i].want);
        tokenizer_close(&t);
    }
}

/* NUL is not white space: it is not trimmed, and a line of NULs is not blank. */
static void nul_is_no_white_space(void **state)
{
    (void)state;
    static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"%shi%s\"}, "
                               "{\"role\": \"assistant\", \"content\": \"yo\"}]}\n";
    char text[256];
    int64_t tokens[2];
    struct tokenizer t = open_golden("llama3", NULL, NULL);
    for (int i = 0; i < 2; i++) {
        const char *nul = i ? "\\u0000" : "";
        snprintf(text, sizeof text, line, nul, nul);
        write_text(at("d.jsonl"), text);
        struct data *d = open_file(at("d.jsonl"), &plain, &t, 512);
        tokens[i] = data_tokens(d);
        data_close(d);
    }
    assert_int_equal(tokens[1], tokens[0] + 2);
    FILE *f = fopen(at("d.jsonl"), "ab");
    assert_non_null(f);
    assert_int_equal(fwrite("\0\0\n", 1, 3, f), 3);
    fclose(f);
    struct data *d = NULL;
    const char *path = at("d.jsonl");
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .seq_len = 512,
                                   .batch_size = 1,
                                   .vocab_size = t.vocab_size,
                                   .once = true};
    check_refused(data_open(&o, &t, &d), NJ_E_FORMAT, "d.jsonl:2: ", "NULs");
    tokenizer_close(&t);
}

/* Both a line and the memory that it needs are bounded. */
static void json_lines_have_a_bound(void **state)
{
    (void)state;
    enum { LISTS = 1 << 21 };
    struct tokenizer t = open_golden("llama3", NULL, NULL);
    struct data *d = NULL;
    const char *path = at("long.jsonl");
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .seq_len = 512,
                                   .batch_size = 1,
                                   .vocab_size = t.vocab_size};
    write_text(path, "{\"text\": \"a\"}\n");
    assert_int_equal(truncate(path, (1 << 28) + 15), 0);
    check_refused(data_open(&o, &t, &d), NJ_E_FORMAT, "long.jsonl:2: longer than the limit of 256",
                  "line");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("{\"text\": \"a\"}\n{\"x\": [{}", f);
    for (int i = 0; i < LISTS; i++)
        fputs(",{}", f);
    fputs("]}\n", f);
    assert_int_equal(fclose(f), 0);
    check_refused(data_open(&o, &t, &d), NJ_E_FORMAT, "long.jsonl:2: parsing it needs too much",
                  "memory");
    unlink(path);
    tokenizer_close(&t);
}

/* A token file holds the ids, documents and losses of the lines. */
static void token_files_hold_what_json_lines_do(void **state)
{
    (void)state;
    char direct[2048], through[2048];
    for (int i = 0; i < DOCUMENTS; i++) {
        struct tokenizer t = open_golden(documents[i].golden, NULL, NULL);
        struct tokenized done;
        write_text(at("d.jsonl"), documents[i].lines);
        const char *path = at("d.jsonl");
        check_ok(tokenize(&path, 1, &plain, &together, &t, at("d.bin"), &done), "tokenize");
        as_text(path, &plain, &t, direct, sizeof direct);
        assert_string_equal(as_text(at("d.bin"), &plain, &t, through, sizeof through), direct);
        struct data *a = open_file(path, &plain, &t, 8), *b = open_file(at("d.bin"), &plain, &t, 8);
        assert_int_equal(data_tokens(a), done.tokens);
        assert_true(data_hash(a) == data_hash(b));
        data_close(a);
        data_close(b);
        check_refused(tokenize(&path, 1, &plain, &together, &t, at("d.bin"), &done), NJ_E_IO,
                      "d.bin: exists", "twice");
        assert_int_equal(unlink(at("d.bin")), 0);
        tokenizer_close(&t);
    }
}

static void failed_reads_of_json_lines_leave_nothing(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    struct tokenized done;
    make_folder("out");
    write_text(at("d.jsonl"), "{\"text\": \"a\"}\n{");
    const char *path = at("d.jsonl");
    check_refused(tokenize(&path, 1, &plain, &together, &t, at("out/x.bin"), &done), NJ_E_FORMAT,
                  "d.jsonl:2:", "line");
    write_text(path, "\n");
    check_refused(tokenize(&path, 1, &plain, &together, &t, at("out/x.bin"), &done), NJ_E_FORMAT,
                  "no text", "empty");
    assert_int_equal(rmdir(at("out")), 0); /* the folder is empty */
    check_refused(tokenize(&path, 1, &plain, &together, &t, at("none/x.bin"), &done), NJ_E_IO,
                  "none/x.bin", "folder");
    tokenizer_close(&t);
}

static const struct {
    const char *golden, *from, *to, *lines, *part;
} refused[] = {
    {"qwen2", NULL, NULL, "{\"text\": \"a\"}\n{\"text\": 1}", "r.jsonl:2: text must be a string"},
    {"qwen2", NULL, NULL, "\n\n[1]", "r.jsonl:3: a line must be an object"},
    {"qwen2", NULL, NULL, "{\"prompt\": \"a\"}", "r.jsonl:1: the row has neither"},
    {"qwen2", NULL, NULL, "{\"text\": \"a\"}\n{\"text\": \"b\"", "r.jsonl:2: column"},
    {"qwen2", NULL, NULL, "{\"text\": \"a\"", "; each line must be one JSON object"},
    {"qwen2", NULL, NULL, "{\"text\": \"\xff\"}", "r.jsonl:1: column"},
    {"qwen2", NULL, NULL, "{\"text\": \"\xff\"}", "; not UTF-8; convert it with iconv"},
    {"qwen2", NULL, NULL, "{\"prompt\": [], \"completion\": \"a\"}", "r.jsonl:1: prompt and"},
    {"qwen2", NULL, NULL, "{\"messages\": 1}", "r.jsonl:1: messages must be a list"},
    {"qwen2", NULL, NULL, "{\"messages\": []}",
     "r.jsonl:1: no turn of messages is the assistant's"},
    {"qwen2", NULL, NULL, "{\"messages\": [{\"role\": 1, \"content\": \"a\"}]}",
     "r.jsonl:1: each of messages must have a role"},
    {"qwen2", NULL, NULL, "{\"messages\": [{\"role\": \"assistant\\u0000x\", \"content\": \"a\"}]}",
     "r.jsonl:1: no turn of messages is the assistant's"},
    {"qwen2", NULL, NULL, "{\"text\": \"a\"}\n\xef\xbb\xbf\xef\xbb\xbf{\"text\": \"a\"}",
     "r.jsonl:2: column"},
    {"qwen2", NULL, NULL, "{\"text\": 18446744073709551615}", "r.jsonl:1: text must be a string"},
    {"qwen2", NULL, NULL, "{\"text\": \"\\ud80\"}", "r.jsonl:1: column"},
    {"qwen2", NULL, NULL, "{\"text\": \"a\", \"x\": 1e}", "r.jsonl:1: column"},
    {"qwen2", NULL, NULL, "{\"messages\": [{\"role\": \"user\", \"content\": []}]}",
     "r.jsonl:1: content of messages has no part"},
    {"gpt2", NULL, NULL, "{\"messages\": []}", "r.jsonl:1: messages: "},
    {"gpt2", NULL, NULL, "{\"messages\": []}", "has neither the tokens of ChatML"},
    {"qwen2", NULL, NULL, "{\"messages\": [{}], \"tools\": [{\"type\": \"function\"}]}",
     "r.jsonl:1: tools have no place"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{}, {}]}]}",
     "r.jsonl:1: tool_calls of messages has no place"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"function_call\": {\"name\": "
     "1}}]}",
     "r.jsonl:1: function_call of messages has no place"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"reasoning_content\": "
     "\"b\"}]}",
     "r.jsonl:1: reasoning_content of messages has no place"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0.5}]}",
     "r.jsonl:1: weight of messages must be 0 (no loss) or 1"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 1e400}]}",
     "r.jsonl:1: weight of messages must be 0 (no loss) or 1"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"name\": 1e400}]}",
     "r.jsonl:1: a number of a conversation must have at most 64 bits"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0}]}",
     "r.jsonl:1: no turn of messages is the assistant's with a weight above 0"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"bot\", \"content\": "
     "\"b\"}]}",
     "r.jsonl:1: no turn of messages is the assistant's, so nothing has a loss; the roles are "
     "user, bot"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"train\": false}]}",
     "r.jsonl:1: no turn of messages is the assistant's with a weight above 0"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}], "
     "\"chat_template_kwargs\": {\"enable_thinking\": false}}",
     "r.jsonl:1: chat_template_kwargs: enable_thinking is nothing that the chat template reads"},
    {"qwen2", NULL, NULL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"image\"}]}]}",
     "r.jsonl:1: content of messages has a part that is not"},
    {"qwen2", NULL, NULL, "{\"messages\": [{\"role\": \"assistant\", \"content\": 1}]}",
     "r.jsonl:1: content of messages must be a string, or a list of parts of type text"},
};

static void bad_json_lines_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tokenizer t = open_golden(refused[i].golden, refused[i].from, refused[i].to);
        struct data *d;
        write_text(at("r.jsonl"), refused[i].lines);
        const char *path = at("r.jsonl");
        const struct data_options o = {.paths = &path,
                                       .path_count = 1,
                                       .seq_len = 1,
                                       .batch_size = 1,
                                       .vocab_size = t.vocab_size};
        const int rc = data_open(&o, &t, &d);
        check_refused(rc, rc == NJ_E_UNSUPPORTED ? NJ_E_UNSUPPORTED : NJ_E_FORMAT, refused[i].part,
                      refused[i].lines);
        tokenizer_close(&t);
    }
}

#define SYSTEM "{\"role\": \"system\", \"content\": \" s \"}, "
#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}, "
#define ASSISTANT(text, more) "{\"role\": \"assistant\", \"content\": \"" text "\"" more "}"
#define TURNS                                                                                      \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"   \
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
#define BRIEF                                                                                      \
    "{% set default = 'Be \"brief\", it\\'s {1}.' %}{% if messages[0].role != 'system' %}"         \
    "{{ '<|im_start|>system\\n' + default + '<|im_end|>\\n' }}{% endif %}" TURNS
#define PLAIN_BRIEF                                                                                \
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif "      \
    "%}" TURNS
/* Template like Qwen3's: the last answer keeps its thoughts, earlier answers lose them. */
#define THINKING                                                                                   \
    "{%- set ns = namespace(q=messages | length - 1) %}{%- for m in messages %}"                   \
    "{%- if m.role == 'user' and not m.content.startswith('<tool_response>') %}"                   \
    "{%- set ns.q = loop.index0 %}{%- endif %}{%- endfor %}{%- for m in messages %}"               \
    "{%- set thought = m.reasoning_content or '' %}{%- set content = m.content %}"                 \
    "{%- if m.role == 'assistant' and '</think>' in content %}"                                    \
    "{%- set thought = content.split('</think>')[0].split('<think>')[-1] %}"                       \
    "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"                 \
    "{{- '<|im_start|>' + m.role + '\\n' }}"                                                       \
    "{%- if m.role == 'assistant' and loop.index0 > ns.q and (loop.last or thought) %}"            \
    "{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}{%- endif %}"                 \
    "{{- content + '<|im_end|>\\n' }}{%- endfor %}"                                                \
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
/* Template like QwQ's: earlier thoughts are removed, and the prompt opens the next one. */
#define OPENING                                                                                    \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content.split('</think>')[-1]"  \
    ".lstrip('\\n') + '<|im_end|>\\n' }}{% endfor %}"                                              \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"
/* Template like Phi-4-mini's: a different token ends the whole text. */
#define ENDING                                                                                     \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' }}"      \
    "{% endfor %}{{ '<|im_start|>assistant\\n' if add_generation_prompt else '<|endoftext|>' }}"
#define MARKED                                                                                     \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"              \
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}"        \
    "<|im_end|>{% endif %}{% endfor %}"
#define CALLING                                                                                    \
    "{% for t in tools %}{{ t.name }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role "    \
    "}}\n"                                                                                         \
    "{{ m.content }}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}"    \
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
#define DATED                                                                                      \
    "<|begin_of_text|>{% for m in ([] if messages[0].role == 'system' else [{'role': 'system', "   \
    "'content': ''}]) + messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"           \
    "{% if m.role == 'system' %}{{ 'Cutting Knowledge Date: December 2023\\nToday Date: ' + "      \
    "strftime_now('%d %b %Y') + '\\n\\n' }}{% endif %}{{ m.content | trim }}<|eot_id|>{% endfor "  \
    "%}"                                                                                           \
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"    \
    "{% endif %}"
#define ASKED "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
#define DATE                                                                                       \
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"                              \
    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

static const struct {
    const char *golden, *template, *messages, *want;
} rendered[] = {
    {"qwen2", BRIEF, USER("q") ASSISTANT("a", ""),
     "<|im_start|>system\nBe \"brief\", it's {1}.<|im_end|>\n" ASKED "{a<|im_end|>}\n"},
    {"qwen2", PLAIN_BRIEF, USER("q") ASSISTANT("a", ""),
     "<|im_start|>system\nBe brief.<|im_end|>\n" ASKED "{a<|im_end|>}\n"},
    {"qwen2", BRIEF, SYSTEM USER("q") ASSISTANT("a", ""),
     "<|im_start|>system\n s <|im_end|>\n" ASKED "{a<|im_end|>}\n"},
    {"qwen2", THINKING, USER("q") ASSISTANT("a", ""),
     ASKED "{<think>\n\n</think>\n\na<|im_end|>}\n"},
    {"qwen2", THINKING, USER("q") ASSISTANT("<think>\\nh\\n</think>\\n\\na", ""),
     ASKED "{<think>\nh\n</think>\n\na<|im_end|>}\n"},
    {"qwen2", THINKING, USER("q") ASSISTANT("a", ", \"reasoning_content\": \"h\\n\""),
     ASKED "{<think>\nh\n</think>\n\na<|im_end|>}\n"},
    {"qwen2", THINKING,
     USER("q") ASSISTANT("<think>h</think>a", "") ", " USER("q") ASSISTANT("b", ""),
     ASKED "{a<|im_end|>}\n" ASKED "{<think>\n\n</think>\n\nb<|im_end|>}\n"},
    {"qwen2", THINKING,
     USER("q") ASSISTANT("a", "") ", " USER("<tool_response>1</tool_response>")
         ASSISTANT("<think>h</think>b", "") ", " ASSISTANT("c", ""),
     ASKED "{a<|im_end|>}\n<|im_start|>user\n<tool_response>1</tool_response><|im_end|>\n"
           "<|im_start|>assistant\n{<think>\nh\n</think>\n\nb<|im_end|>}\n"
           "<|im_start|>assistant\n{<think>\n\n</think>\n\nc<|im_end|>}\n"},
    {"qwen2", THINKING, ASSISTANT("a", ""), "<|im_start|>assistant\n{a<|im_end|>}\n"},
    {"qwen2", TURNS, USER("q") ASSISTANT("<think>h</think>a", ""),
     ASKED "{<think>h</think>a<|im_end|>}\n"},
    {"qwen2", OPENING,
     USER("q") ASSISTANT("<think>h</think>a", "") ", " USER("q") ASSISTANT("b", ""),
     ASKED "{a<|im_end|>}\n" ASKED "{b<|im_end|>}\n"},
    {"qwen2", ENDING, USER("q") ASSISTANT("a", "") ", " USER("q") ASSISTANT("b", ""),
     "<|im_start|>user\nq<|im_end|><|im_start|>assistant\n{a<|im_end|>}<|im_start|>user\n"
     "q<|im_end|><|im_start|>assistant\n{b<|im_end|><|endoftext|>}"},
    {"qwen2", MARKED, USER("q") ASSISTANT("a", "") ", " ASSISTANT("b", ", \"weight\": 0"),
     "<|im_start|>user\nq<|im_end|><|im_start|>assistant\n{a<|im_end|>}<|im_start|>assistant\n"
     "b<|im_end|>"},
    {"qwen2", MARKED,
     "{\"role\": \"user\", \"content\": \"q\", \"weight\": 1}, " ASSISTANT(
         "a", ", \"weight\": 0") ", " ASSISTANT("b", ""),
     "<|im_start|>user\n{q<|im_end|>}<|im_start|>assistant\na<|im_end|><|im_start|>assistant\n"
     "{b<|im_end|>}"},
    {"qwen2", CALLING,
     USER("q") ASSISTANT("a", ", \"tool_calls\": [{\"function\": {\"arguments\": {\"x\": 1}}}]"),
     "T" ASKED "{a{\"x\": 1}<|im_end|>}\n"},
    {"llama3", DATED, USER(" q ") ASSISTANT("a", ""),
     DATE "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\n{a<|eot_id|>}"},
    {"llama3", DATED, SYSTEM ASSISTANT("a", ""),
     DATE "s<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{a<|eot_id|>}"},
    /* Weight 0 removes the loss; null, [] and "" have no effect. */
    {"qwen2", TURNS,
     USER("q") ASSISTANT("a", ", \"weight\": 0") ", " USER("q") ASSISTANT("b", ", \"weight\": 1"),
     ASKED "a<|im_end|>\n" ASKED "{b<|im_end|>}\n"},
    {"qwen2", TURNS,
     USER("q") ASSISTANT("a", ", \"tool_calls\": [], \"function_call\": null, \"weight\": null, "
                              "\"reasoning_content\": \"\""),
     ASKED "{a<|im_end|>}\n"},
};

/* Conversations are written as the model's own template writes them. */
static void conversations_are_as_in_the_template(void **state)
{
    (void)state;
    char text[2048], line[1024], want[2048];
    for (size_t i = 0; i < sizeof rendered / sizeof *rendered; i++) {
        struct tokenizer t = open_golden(rendered[i].golden, NULL, NULL);
        const bool tools = strstr(rendered[i].template, "tools") != NULL;
        snprintf(line, sizeof line, "{\"tools\": %s, \"messages\": [%s]}",
                 tools ? "[{\"name\": \"T\"}]" : "null", rendered[i].messages);
        snprintf(want, sizeof want, "%s%s", rendered[i].want,
                 strstr(rendered[i].want, "<|endoftext|>") ? ""
                 : rendered[i].golden[0] == 'q'            ? "<|endoftext|>"
                                                           : "<|end_of_text|>");
        write_text(at("model/chat_template.jinja"), rendered[i].template);
        write_text(at("c.jsonl"), line);
        assert_string_equal(as_text(at("c.jsonl"), &plain, &t, text, sizeof text), want);
        unlink(at("model/chat_template.jinja"));
        tokenizer_close(&t);
    }
}

/* The template is found in every place; among several, the one called default, or tool_use if there are tools. */
static void templates_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *want; /* text that the error begins with, after ! */
    } templates[] = {
        {"tokenizer_config.json", "{\"model_max_length\": 1e30, \"chat_template\": \"A\"}", "A"},
        {"tokenizer_config.json",
         "{\"model_max_length\": 1000000000000000019884624838656, \"chat_template\": \"B\"}", "B"},
        {"tokenizer_config.json",
         "{\"chat_template\": [{\"name\": \"other\", \"template\": \"O\"}, {\"name\": \"default\", "
         "\"template\": \"C\"}]}",
         "C"},
        {"tokenizer_config.json", "{\"chat_template\": [{\"name\": \"x\", \"template\": \"O\"}]}",
         "!none of its chat templates is called default"},
        {"tokenizer_config.json", "{\"chat_template\": 1}", "!chat_template must be a text"},
        {"tokenizer_config.json", "{\"chat_template\": ", "!tokenizer_config.json:1: column"},
        {"chat_template.json", "{\"chat_template\": \"D\"}", "D"},
        {"chat_template.jinja", "{{ eos_token }}{{ bos_token is defined }}", "False"},
        {"chat_template.jinja", "a\n{% if %}", "!model:2: %} where an expression must come"},
        {"chat_template.jinja", "{{ raise_exception('no system') }}",
         "!t.jsonl:1: messages: chat template of "},
    };
    static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}";
    write_text(at("t.jsonl"), line);
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        char name[64], text[256];
        struct tokenizer t = open_golden("qwen2", NULL, NULL);
        struct chat chat;
        struct template_text out = {0};
        snprintf(name, sizeof name, "model/%s", templates[i].file);
        write_text(at(name), templates[i].text);
        json_t *none = json_object();
        int rc = chat_find(t.dir, &t, &chat);
        if (!rc)
            rc = template_render(chat.plain, none, &out);
        if (templates[i].want[0] == '!' && templates[i].want[1] != 't') {
            assert_true(rc != 0);
            assert_non_null(strstr(fail_text(), templates[i].want + 1));
        } else if (templates[i].want[0] != '!') {
            check_ok(rc, templates[i].text);
            snprintf(text, sizeof text, "%.*s", (int)out.bytes, out.text);
            assert_string_equal(text, templates[i].want);
        }
        json_decref(none);
        template_text_free(&out);
        chat_free(&chat);
        unlink(at(name));
        tokenizer_close(&t);
    }
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    struct tokenized done;
    const char *path = at("t.jsonl"), *pipe = at("model/chat_template.jinja");
    write_text(at("t.jsonl"), "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}");
    assert_int_equal(mkfifo(pipe, 0666), 0);
    check_refused(tokenize(&path, 1, &plain, &together, &t, at("t.bin"), &done), NJ_E_IO,
                  "chat_template.jinja: not a regular file", "a pipe");
    unlink(pipe);
    tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_json_lines_are_read),
        cmocka_unit_test(nul_is_no_white_space),
        cmocka_unit_test(json_lines_have_a_bound),
        cmocka_unit_test(token_files_hold_what_json_lines_do),
        cmocka_unit_test(failed_reads_of_json_lines_leave_nothing),
        cmocka_unit_test(bad_json_lines_are_named),
        cmocka_unit_test(conversations_are_as_in_the_template),
        cmocka_unit_test(templates_are_found),
    };
    return cmocka_run_group_tests_name("jsonl", tests, scratch_begin, scratch_end);
}
