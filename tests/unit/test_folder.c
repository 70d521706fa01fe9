/* SPDX-License-Identifier: Apache-2.0
 *
 * test_folder.c: finding models in the Hugging Face cache, and output folders that appear complete or not at all.
 */
#include "base/temp_name.h"
#include "formats/model_path.h"
#include "formats/side_files.h"
#include "io/cache_folder.h"
#include "io/model_folder.h"
#include "io/notes.h"
#include "io/whole_file.h"
#include "unit.h"

static void make_path(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *slash = strchr(path + strlen(scratch) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    assert_int_equal(mkdir(path, 0777), 0);
}

static int clear_environment(void **state)
{
    (void)state;
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", scratch, 1);
    return 0;
}

static void paths_are_taken_as_they_are(void **state)
{
    (void)state;
    char found[512], tiny[8];
    make_folder("model");
    check_ok(model_resolve(at("model"), found, sizeof found), "folder");
    assert_string_equal(found, at("model"));
    check_refused(model_resolve(at("model"), tiny, sizeof tiny), NJ_E_IO, "too long", "tiny");
}

/* A ~ that no shell has expanded, as in a file of variables, means the home folder. */
static void a_home_in_a_variable_is_found(void **state)
{
    char found[512], wanted[512];
    clear_environment(state);
    setenv("HOME", at("house"), 1);
    setenv("HF_HOME", "~/hf", 1);
    snprintf(wanted, sizeof wanted, "(%s/hf/hub/models--a--b/refs/main was tried)", at("house"));
    check_refused(model_resolve("a/b", found, sizeof found), NJ_E_IO, wanted, "HF_HOME=~/hf");
    setenv("HF_HOME", "~other/hf", 1);
    check_refused(model_resolve("a/b", found, sizeof found), NJ_E_IO, "(~other/hf/hub/", "~other");
}

static void cache_is_searched(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *value, *below;
    } places[] = {
        {"HF_HUB_CACHE", "c1", "c1"},
        {"HF_HOME", "c2", "c2/hub"},
        {"XDG_CACHE_HOME", "c3", "c3/huggingface/hub"},
        {"HOME", "c4", "c4/.cache/huggingface/hub"},
    };
    for (int i = 0; i < 4; i++) {
        char found[512], name[256];
        clear_environment(state);
        setenv(places[i].variable, at(places[i].value), 1);
        check_refused(model_resolve("Qwen/Tiny-0.5B", found, sizeof found), NJ_E_IO,
                      "models--Qwen--Tiny-0.5B/refs/main was tried", "not there");
        snprintf(name, sizeof name, "%s/models--Qwen--Tiny-0.5B/refs", places[i].below);
        make_path(name);
        snprintf(name, sizeof name, "%s/models--Qwen--Tiny-0.5B/refs/main", places[i].below);
        write_text(at(name), "abc123\n");
        check_refused(model_resolve("Qwen/Tiny-0.5B", found, sizeof found), NJ_E_IO, "lacks",
                      "no snapshot");
        snprintf(name, sizeof name, "%s/models--Qwen--Tiny-0.5B/snapshots/abc123", places[i].below);
        make_path(name);
        check_ok(model_resolve("Qwen/Tiny-0.5B", found, sizeof found), name);
        assert_string_equal(found, at(name));
    }
}

/* A pipe without a writer is refused instead of waited for. */
static void caches_hold_files(void **state)
{
    char found[512];
    clear_environment(state);
    setenv("HF_HUB_CACHE", at("piped"), 1);
    make_path("piped/models--Qwen--Tiny/refs");
    assert_int_equal(mkfifo(at("piped/models--Qwen--Tiny/refs/main"), 0666), 0);
    check_refused(model_resolve("Qwen/Tiny", found, sizeof found), NJ_E_IO,
                  "refs/main: not a regular file; fetch the model again", "pipe");
}

static void names_of_folders_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int code;
        const char *part;
    } cases[] = {
        {"m.gguf", NJ_E_IO, "m.gguf: no such folder or file; give"},
        {"m.apr", NJ_E_IO, "m.apr: no such folder or file; give"},
        {"m.parquet", NJ_E_UNSUPPORTED, "Parquet holds data"},
        {"x/pytorch_model.bin", NJ_E_UNSUPPORTED, "safe_serialization=True"},
        {"x/model.safetensors", NJ_E_UNSUPPORTED, "give the folder that holds this file"},
        {"nowhere", NJ_E_IO, "nowhere: no such folder or file"},
        {"../Qwen", NJ_E_IO, "no such folder"},
        {"a/b/c", NJ_E_IO, "no such folder"},
        {"Qwen/..", NJ_E_IO, "no such folder"},
        {"Qwen/x y", NJ_E_IO, "no such folder"},
        {"", NJ_E_IO, "no such folder"},
        {"Qwen/Missing", NJ_E_IO, "hf download Qwen/Missing"},
    };
    char found[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(model_resolve(cases[i].model, found, sizeof found), cases[i].code,
                      cases[i].part, cases[i].model);
    write_text(at("file"), "x");
    check_refused(model_resolve(at("file"), found, sizeof found), NJ_E_IO,
                  "neither a folder nor a GGUF or APR file; give the folder", "file");
}

static void gguf_and_apr_files_are_models(void **state)
{
    char found[512], named[600];
    clear_environment(state);
    make_path("several");
    write_text(at("one"), "GGUF\3");
    check_ok(model_resolve(at("one"), found, sizeof found), "file");
    assert_string_equal(found, at("one"));
    write_text(at("several/m-00002-of-00002.gguf"), "GGUF");
    write_text(at("several/m-00001-of-00002.gguf"), "GGUF");
    snprintf(named, sizeof named, "no config.json; name the file: %s",
             at("several/m-00001-of-00002.gguf"));
    check_refused(model_resolve(at("several"), found, sizeof found), NJ_E_IO, named, "folder");
    setenv("HF_HUB_CACHE", at("gguf-hub"), 1);
    make_path("gguf-hub/models--A--B/refs");
    write_text(at("gguf-hub/models--A--B/refs/main"), "abc\n");
    make_path("gguf-hub/models--A--B/snapshots/abc");
    write_text(at("gguf-hub/models--A--B/snapshots/abc/q.gguf"), "GGUF");
    check_refused(model_resolve("A/B", found, sizeof found), NJ_E_IO, "snapshots/abc/q.gguf",
                  "cache");
    make_path("apr");
    write_bytes(at("apr/m.apr"), "APR\0", 4);
    check_ok(model_resolve(at("apr/m.apr"), found, sizeof found), "APR");
    assert_string_equal(found, at("apr/m.apr"));
    snprintf(named, sizeof named, "holds APR files and no config.json; name the file: %s",
             at("apr/m.apr"));
    check_refused(model_resolve(at("apr"), found, sizeof found), NJ_E_IO, named, "folder");
    write_text(at("several/config.json"), "{}");
    check_ok(model_resolve(at("several"), found, sizeof found), "a folder of both");
}

static void tokenizer_files_are_copied(void **state)
{
    (void)state;
    make_folder("from");
    make_folder("to");
    write_text(at("from/tokenizer.json"), "{\"a\": 1}");
    write_text(at("from/merges.txt"), "");
    write_text(at("from/model.safetensors"), "weights");
    assert_int_equal(symlink("tokenizer.json", at("from/vocab.json")), 0);
    check_ok(side_files_copy(at("from"), at("to")), "copy");
    check_text(at("to/vocab.json"), "{\"a\": 1}");
    assert_int_equal(access(at("to/merges.txt"), F_OK), 0);
    assert_int_equal(access(at("to/model.safetensors"), F_OK), -1);
    check_refused(side_files_copy(at("from"), "/proc"), NJ_E_IO,
                  "/proc/tokenizer.json: cannot write it", "unwritable");
}

static char heard[1024];
static void hear(const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

static void chat_templates_that_stay_behind_are_said(void **state)
{
    (void)state;
    make_folder("named");
    make_folder("untold");
    write_text(at("named/chat_template.jinja"), "x");
    notes_to(hear);
    check_ok(side_files_check(at("named")), "none");
    assert_string_equal(heard, "");
    make_folder("named/additional_chat_templates");
    check_ok(side_files_check(at("named")), "check");
    assert_non_null(strstr(heard, "named/additional_chat_templates is not copied; copy it into"));
    heard[0] = '\0';
    notes_to(hear);
    check_ok(side_files_copy(at("named"), at("untold")), "copy");
    assert_non_null(strstr(heard, "additional_chat_templates is not copied"));
    notes_to(NULL);
}

/* A link out of the model's folder may lead to a secret, which copying would publish. */
static void side_files_come_from_the_model(void **state)
{
    (void)state;
    struct stat info;
    make_folder("evil");
    make_folder("taken-in");
    write_text(at("secret"), "KEY");
    assert_int_equal(symlink("../secret", at("evil/chat_template.jinja")), 0);
    check_refused(side_files_copy(at("evil"), at("taken-in")), NJ_E_ARG,
                  "chat_template.jinja: a link to ", "outside");
    assert_non_null(strstr(fail_text(), "/secret, outside of the model's folder; put the file"));
    check_refused(side_files_check(at("evil")), NJ_E_ARG, "outside of the model", "check");
    assert_int_equal(access(at("taken-in/chat_template.jinja"), F_OK), -1);
    unlink(at("evil/chat_template.jinja"));
    assert_int_equal(mkfifo(at("evil/vocab.json"), 0666), 0);
    check_refused(side_files_check(at("evil")), NJ_E_ARG, "not a regular file", "pipe");
    unlink(at("evil/vocab.json"));
    assert_int_equal(symlink("/dev/zero", at("evil/vocab.json")), 0);
    check_refused(side_files_check(at("evil")), NJ_E_ARG, "a link to /dev/zero", "device");
    unlink(at("evil/vocab.json"));
    write_text(at("evil/merges.txt"), "a b");
    assert_int_equal(truncate(at("evil/merges.txt"), (64 << 20) + 1), 0);
    check_refused(side_files_check(at("evil")), NJ_E_UNSUPPORTED, "64 MiB", "size");
    assert_int_equal(truncate(at("evil/merges.txt"), 64 << 20), 0);
    check_ok(side_files_check(at("evil")), "size");
    unlink(at("evil/merges.txt"));

    /* The copy is readable only by those who could read the original. */
    write_text(at("evil/vocab.json"), "{}");
    assert_int_equal(chmod(at("evil/vocab.json"), 0600), 0);
    const mode_t mask = umask(022);
    check_ok(side_files_copy(at("evil"), at("taken-in")), "copy");
    umask(mask);
    assert_int_equal(stat(at("taken-in/vocab.json"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    unlink(at("taken-in/vocab.json"));
    assert_int_equal(chmod(at("evil/vocab.json"), 0666), 0);
    umask(077);
    check_ok(side_files_copy(at("evil"), at("taken-in")), "copy");
    umask(mask);
    assert_int_equal(stat(at("taken-in/vocab.json"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);

    /* A snapshot of the cache consists of links to blobs of its own model, wherever the cache lies. */
    make_path("snapshots/hub/models--A--B/snapshots/abc");
    make_path("snapshots/hub/models--A--B/blobs");
    make_path("snapshots/hub/models--A--C/blobs");
    make_folder("from-hub");
    write_text(at("snapshots/hub/models--A--B/blobs/1"), "blob");
    write_text(at("snapshots/hub/models--A--C/blobs/1"), "other");
    char *link = at("snapshots/hub/models--A--B/snapshots/abc/tokenizer.json");
    assert_int_equal(symlink("../../blobs/1", link), 0);
    check_ok(side_files_copy(at("snapshots/hub/models--A--B/snapshots/abc"), at("from-hub")),
             "hub");
    check_text(at("from-hub/tokenizer.json"), "blob");
    link = at("snapshots/hub/models--A--B/snapshots/abc/merges.txt");
    assert_int_equal(symlink("../../../models--A--C/blobs/1", link), 0);
    check_refused(side_files_check(at("snapshots/hub/models--A--B/snapshots/abc")), NJ_E_ARG,
                  "outside", "another model's");
}

/* Neither a link nor a file of a killed process with the same number is written to. */
static void files_of_a_folder_appear_whole(void **state)
{
    (void)state;
    struct whole_file w;
    char temp[64];
    write_text(at("page"), "old");
    write_text(at("theirs"), "theirs");
    snprintf(temp, sizeof temp, "page.tmp-%ld", (long)getpid());
    assert_int_equal(symlink("theirs", at(temp)), 0);
    check_ok(whole_file_begin(&w, at("page")), "begin");
    fputs("new", w.f);
    check_text(at("page"), "old");
    check_ok(whole_file_end(&w, 0), "end");
    check_text(at("page"), "new");
    check_text(at("theirs"), "theirs");
    check_ok(whole_file_begin(&w, at("page")), "begin");
    fputs("newer", w.f);
    assert_int_equal(whole_file_end(&w, NJ_E_FORMAT), NJ_E_FORMAT);
    assert_int_equal(access(w.temp, F_OK), -1);
    check_text(at("page"), "new");
    check_refused(whole_file_begin(&w, at("none/page")), NJ_E_IO, "none/page: cannot be written",
                  "no folder");
}

static int begin_and_abort(const char *path)
{
    struct folder f;
    const int rc = folder_begin(&f, path);
    folder_abort(&f);
    return rc;
}

static void folders_appear_whole(void **state)
{
    (void)state;
    struct folder f;
    char inside[4100];
    check_ok(folder_begin(&f, at("runs/a/out/")), "begin");
    assert_int_equal(access(at("runs/a/out"), F_OK), -1);
    snprintf(inside, sizeof inside, "%s/sub", f.temp);
    assert_int_equal(mkdir(inside, 0777), 0);
    snprintf(inside, sizeof inside, "%s/sub/x", f.temp);
    write_text(inside, "x");
    check_ok(folder_commit(&f), "commit");
    folder_abort(&f);
    assert_int_equal(access(at("runs/a/out/sub/x"), F_OK), 0);
    check_refused(folder_begin(&f, at("runs/a/out")), NJ_E_IO, "the folder is not empty", "again");
    check_refused(begin_and_abort(at("runs/a/out")), NJ_E_IO, "not empty", "check");
    check_refused(begin_and_abort(at("runs/a/out/sub/x")), NJ_E_IO, "Not a directory", "file");

    /* An empty folder is accepted. */
    make_folder("empty");
    check_ok(begin_and_abort(at("empty")), "check");
    check_ok(folder_begin(&f, at("empty")), "begin");
    check_ok(folder_commit(&f), "commit");
    assert_int_equal(access(at("empty"), F_OK), 0);

    check_ok(folder_begin(&f, at("gone")), "begin");
    snprintf(inside, sizeof inside, "%s/x", f.temp);
    write_text(inside, "x");
    snprintf(inside, sizeof inside, "%s", f.temp);
    folder_abort(&f);
    assert_int_equal(access(inside, F_OK), -1);
    assert_int_equal(access(at("gone"), F_OK), -1);
    check_ok(folder_begin(&f, at("gone/with/parents")), "begin");
    folder_abort(&f);
    assert_int_equal(access(at("gone"), F_OK), -1);
}

/* The folder of a process with the same number, killed in a container or alive on another machine, is neither removed
 * nor in the way. */
static void temporary_folders_of_others_stay(void **state)
{
    (void)state;
    struct folder f;
    char temp[64], theirs[80];
    snprintf(temp, sizeof temp, "shared.tmp-%d", (int)getpid());
    snprintf(theirs, sizeof theirs, "%s/theirs", temp);
    make_folder(temp);
    write_text(at(theirs), "x");
    check_ok(folder_begin(&f, at("shared")), "begin");
    assert_int_equal(access(f.temp, F_OK), 0);
    assert_int_equal(temp_process(strtol(strrchr(f.temp, '-') + 1, NULL, 10)), getpid());
    check_ok(folder_commit(&f), "commit");
    assert_int_equal(rmdir(at("shared")), 0);
    assert_int_equal(access(at(theirs), F_OK), 0);
    snprintf(temp, sizeof temp, "probe.tmp-%d", (int)getpid());
    make_folder(temp);
    check_ok(folder_check_place(at("new")), "probe");
    assert_int_equal(access(at(temp), F_OK), 0);
}

/* Folders that existed before, and folders that are not empty, stay. */
static void made_folders_go_again(void **state)
{
    (void)state;
    char before[4096];
    make_folder("mine");
    check_ok(folder_make(at("mine/a/b/"), before, sizeof before), "make");
    assert_string_equal(before, at("mine"));
    folder_unmake(at("mine/a/b/"), before);
    assert_int_equal(access(at("mine/a"), F_OK), -1);
    assert_int_equal(access(at("mine"), F_OK), 0);
    check_ok(folder_make(at("mine/a/."), before, sizeof before), "make");
    folder_unmake(at("mine/a/."), before);
    assert_int_equal(access(at("mine/a"), F_OK), -1);
    check_refused(folder_make("", before, sizeof before), NJ_E_IO, "not usable as a folder name",
                  "");
    check_ok(folder_make(at("mine/a/b"), before, sizeof before), "make");
    write_text(at("mine/a/x"), "x");
    folder_unmake(at("mine/a/b"), before);
    assert_int_equal(access(at("mine/a/b"), F_OK), -1);
    assert_int_equal(access(at("mine/a/x"), F_OK), 0);
    check_ok(folder_make(at("mine"), before, sizeof before), "there");
    folder_unmake(at("mine"), before);
    assert_int_equal(access(at("mine"), F_OK), 0);
}

/* Another process took the name meanwhile: its folder stays, ours is removed. */
static void taken_names_are_not_overwritten(void **state)
{
    (void)state;
    struct folder f;
    char temp[4100];
    check_ok(folder_begin(&f, at("taken")), "begin");
    snprintf(temp, sizeof temp, "%s", f.temp);
    make_folder("taken");
    write_text(at("taken/theirs"), "x");
    check_refused(folder_commit(&f), NJ_E_IO, "taken: cannot publish the folder", "commit");
    assert_int_equal(access(at("taken/theirs"), F_OK), 0);
    assert_int_equal(access(temp, F_OK), -1);
}

static void unwritable_places_are_refused(void **state)
{
    (void)state;
    write_text(at("plain"), "x");
    check_refused(begin_and_abort(at("plain/out")), NJ_E_IO, "plain", "below a file");
    check_refused(begin_and_abort("/proc/out"), NJ_E_IO, "/proc/out: cannot create it", "/proc");
    check_refused(begin_and_abort("/proc/a/b/out"), NJ_E_IO, "/proc/a: cannot create", "deep");
    check_refused(begin_and_abort("/sys/a/b/out"), NJ_E_IO, "/sys/a: cannot create", "sys");
    assert_null(strstr(fail_text(), "No such file")); /* the cause is missing permission */
    check_refused(begin_and_abort(""), NJ_E_IO, "not usable as a folder name", "empty name");
    check_ok(begin_and_abort(at("new/deep/out")), "new");
    assert_int_equal(access(at("new"), F_OK), -1);
}

static void paths_in_a_folder_are_told(void **state)
{
    (void)state;
    make_path("tree/data/deep");
    make_path("tree/data2");
    write_text(at("tree/data/file"), "x");
    assert_int_equal(symlink(at("tree/data/deep"), at("tree/link")), 0);
    const struct {
        const char *dir, *path;
        bool holds;
    } pairs[] = {
        {"tree/data", "tree/data", true},
        {"tree/data", "tree/data/", true},
        {"tree/data/", "tree/data/new/deeper", true},
        {"tree/data", "tree/data2", false},
        {"tree/data", "tree/data3/new", false},
        {"tree/data", "tree", false},
        {"tree/data/deep", "tree/data/new", false},
        {"tree/data", "tree/data2/../data//deep/../new", true},
        {"tree/data", "tree/link/new", true},
        {"tree/link", "tree/data/deep/new", true},
        {"tree/data", "tree/data/file", true},
        {"tree/data/file", "tree/data/file", false},
        {"tree/none", "tree/none/new", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (folder_holds(at(pairs[i].dir), at(pairs[i].path)) != pairs[i].holds)
            fail_msg("%s in %s: not %d", pairs[i].path, pairs[i].dir, pairs[i].holds);
    assert_true(folder_holds("/", "new"));
    assert_true(folder_holds(".", "new"));
    assert_false(folder_holds(at("tree"), "new"));
}

static void free_space_is_checked(void **state)
{
    (void)state;
    check_ok(folder_check_model_space(at("not/there/yet"), 1), "one byte");
    check_refused(folder_check_model_space(at("not/there/yet"), UINT64_MAX / 2), NJ_E_IO,
                  "MiB are needed", "all bytes");
    check_ok(folder_check_model_space("relative", 1), "relative");
    check_refused(folder_check_model_space("relative/x", UINT64_MAX / 2), NJ_E_IO, "MiB are needed",
                  "all");
    check_refused(folder_check_model_space("/nowhere/x", UINT64_MAX / 2), NJ_E_IO, "MiB are needed",
                  "root");
    check_ok(folder_check_model_space("/proc", 1), "a file system that does not say");
}

static void kept_in(const char *file, mode_t folder_mode, mode_t file_mode)
{
    remove_tree(at("cache"));
    make_folder("cache");
    make_folder("cache/nojit");
    write_text(at(file), "x");
    assert_int_equal(chmod(at(file), file_mode), 0);
    assert_int_equal(chmod(at("cache/nojit"), folder_mode), 0);
}

/* In a folder where others can write, files may be forged. */
static void caches_of_others_are_not_believed(void **state)
{
    static const struct {
        mode_t folder, file;
        uid_t folder_owner, file_owner;
        const char *why; /* reason; "": it is used */
    } cases[] = {
        {0700, 0600, 0, 0, ""},
        {0755, 0644, 0, 0, ""},
        {0777, 0644, 0, 0, "others can write to"},
        {01777, 0644, 0, 0, "others can write to"},
        {0700, 0666, 0, 0, "others can write to"},
        {0755, 0644, 65534, 0, "belongs to user 65534"},
        {0755, 0644, 0, 65534, "belongs to user 65534"},
    };
    const char *file = "cache/nojit/vulkan-1.tested";
    char out[3072], why[4200];
    (void)state;
    kept_in(file, 0700, 0600);
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kept_in(file, cases[i].folder, cases[i].file);
        if (cases[i].folder_owner + cases[i].file_owner > 0 &&
            (geteuid() != 0 || chown(at("cache/nojit"), cases[i].folder_owner, 0) != 0 ||
             chown(at(file), cases[i].file_owner, 0) != 0))
            continue; /* only root can change the owner */
        cache_folder(out, sizeof out, why, sizeof why);
        if ((why[0] == '\0') != (cases[i].why[0] == '\0') || !strstr(why, cases[i].why))
            fail_msg("case %zu: \"%s\", not \"%s\"", i, why, cases[i].why);
        assert_string_equal(out, why[0] == '\0' ? at("cache/nojit") : "");
    }
    remove_tree(at("cache/nojit"));
    cache_folder(out, sizeof out, why, sizeof why);
    assert_string_equal(out, at("cache/nojit"));
    assert_string_equal(why, "");
    remove_tree(at("cache"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(paths_are_taken_as_they_are, clear_environment),
        cmocka_unit_test_setup(cache_is_searched, clear_environment),
        cmocka_unit_test_setup(a_home_in_a_variable_is_found, clear_environment),
        cmocka_unit_test_setup(caches_hold_files, clear_environment),
        cmocka_unit_test_setup(caches_of_others_are_not_believed, clear_environment),
        cmocka_unit_test_setup(names_of_folders_are_checked, clear_environment),
        cmocka_unit_test(gguf_and_apr_files_are_models),
        cmocka_unit_test(tokenizer_files_are_copied),
        cmocka_unit_test(chat_templates_that_stay_behind_are_said),
        cmocka_unit_test(side_files_come_from_the_model),
        cmocka_unit_test(files_of_a_folder_appear_whole),
        cmocka_unit_test(folders_appear_whole),
        cmocka_unit_test(temporary_folders_of_others_stay),
        cmocka_unit_test(made_folders_go_again),
        cmocka_unit_test(taken_names_are_not_overwritten),
        cmocka_unit_test(unwritable_places_are_refused),
        cmocka_unit_test(paths_in_a_folder_are_told),
        cmocka_unit_test(free_space_is_checked),
    };
    return cmocka_run_group_tests_name("folder", tests, scratch_begin, scratch_end);
}
