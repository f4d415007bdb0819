//! The programs, each a script of `sh` whose output is the same in every run.

/// One program.
pub struct Program {
    pub name: &'static str,
    /// Programs that must be on the search path.
    pub needs: &'static [&'static str],
    pub script: &'static str,
    /// Its exit code without us.
    pub code: i32,
    /// It writes more than so many bytes.
    pub quiet: usize,
}

const fn program(name: &'static str, needs: &'static [&'static str], script: &'static str) -> Program {
    Program {
        name,
        needs,
        script,
        code: 0,
        quiet: 0,
    }
}

const fn ending(code: i32, program: Program) -> Program {
    Program { code, ..program }
}

/// The numpy of the row that needs it.
pub const NUMPY: &str = "numpy==2.2.6";

pub const PROGRAMS: &[Program] = &[
    ending(
        7,
        program(
            "bash",
            &["bash"],
            "bash -c 'declare -A a=([x]=1); echo ${a[x]} $BASH_VERSION; type cd; trap \"echo left\" EXIT; (exit 3) & wait $!; echo $?; exit 7'",
        ),
    ),
    program(
        "dash",
        &["dash"],
        "dash -c 'ls -la /proc/self/fd | wc -l; ulimit -a; umask; set -- a b; echo $#; kill -l 9'",
    ),
    program("ls", &["ls"], "ls -la --time-style=+ /etc /usr/bin | head -400"),
    program(
        "cat, od, cksum",
        &["od", "cksum"],
        "cat words.txt | od -c | head -50; cksum words.txt",
    ),
    program(
        "sort, threads",
        &["sort"],
        "seq 200000 | sort --parallel=4 -r -S 1M | sha256sum",
    ),
    program(
        "cut, paste, join, comm",
        &["comm"],
        "cut -d' ' -f1 words.txt | sort > a; tac words.txt | sort > b; comm a b | head; paste a b | tail -3; join a a | wc",
    ),
    program(
        "stat, date, env",
        &["stat"],
        "stat -c '%a %s' words.txt; date -u -d @86400; env -i A=b env; nice; nproc; tty; true",
    ),
    program(
        "split, factor, numfmt",
        &["numfmt"],
        "split -l 10 words.txt part.; ls part.*; factor 1234567891; numfmt --to=iec 123456789; true",
    ),
    program(
        "cat of proc",
        &["cat"],
        "cat /proc/self/limits; cat /proc/self/wchan 2>&1 | wc -l; find /proc/self/task -maxdepth 0",
    ),
    program(
        "sed",
        &["sed"],
        "sed -n 's/\\(.\\)\\(.\\)/\\2\\1/gp' words.txt | head -40",
    ),
    program(
        "awk",
        &["awk"],
        "awk -F, '{ s += $2 } END { printf \"%.3f %d\\n\", s, NR; system(\"echo child\") }' numbers.csv",
    ),
    ending(
        1,
        program(
            "grep",
            &["grep"],
            "grep -rn 'e.*e' . | sort | head; grep -P '^(?=.*q)' words.txt | head -3; grep never-there words.txt",
        ),
    ),
    program(
        "find, xargs",
        &["find", "xargs"],
        "find . -type f | sort | xargs -P 2 -n 1 sha256sum | sort",
    ),
    program(
        "tar",
        &["tar"],
        "tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | sha256sum",
    ),
    program(
        "gzip",
        &["gzip"],
        "gzip -9nc words.txt | sha256sum; gzip -9nc words.txt | gzip -t; gzip -l nothing.gz; true",
    ),
    program(
        "xz, threads",
        &["xz"],
        "seq 100000 | xz -T2 -2 --block-size=64KiB | sha256sum",
    ),
    program(
        "bzip2",
        &["bzip2"],
        "bzip2 -kc words.txt | sha256sum; bzip2 -t words.txt 2>&1; true",
    ),
    program("zstd, threads", &["zstd"], "seq 100000 | zstd -T2 -q | sha256sum"),
    program(
        "diff",
        &["diff"],
        "sort words.txt > sorted; diff -u --label a --label b words.txt sorted | head -30",
    ),
    program(
        "python3",
        &["python3"],
        "python3 -c 'import threading, subprocess, sqlite3, json, hashlib, multiprocessing as m, sys, ctypes\nprint(sys.version, threading.active_count())\nprint(subprocess.run([\"echo\", \"x\"], capture_output=True))\nprint(sqlite3.connect(\":memory:\").execute(\"select 1+1\").fetchall(), ctypes.CDLL(None).abs(-4))\nwith m.get_context(\"fork\").Pool(2) as p: print(p.map(abs, [-1, 2, -3]))\nsys.exit(\"on purpose\")'; test $? = 1",
    ),
    program(
        "numpy",
        &["python3"],
        "python3 -c 'import numpy as n\na = n.arange(250000.).reshape(500, 500) / 7e4\nprint(n.__version__, (a @ a).sum(), n.linalg.eigvalsh(a[:9, :9] @ a[:9, :9].T))'",
    ),
    program(
        "OpenMP",
        &["gcc"],
        "gcc -O2 -fopenmp -DOMP -o hello hello.c && OMP_NUM_THREADS=4 ./hello",
    ),
    ending(
        3,
        program(
            "gcc",
            &["gcc"],
            "gcc -O2 -frandom-seed=1 -c hello.c && sha256sum hello.o; gcc -print-search-dirs; gcc -o hello hello.c && ./hello",
        ),
    ),
    program(
        "ld, nm, objdump",
        &["objdump"],
        "gcc -c hello.c && nm hello.o && objdump -d hello.o && readelf -hW hello.o && strings hello.o | head && ar rcD x.a hello.o && cksum x.a",
    ),
    program(
        "make",
        &["make", "gcc"],
        "printf 'all: a b\\na b: ; @echo making $@; sleep 0\\n' > Makefile; make -j1 --no-print-directory; make nothing 2>&1; true",
    ),
    program("java", &["java"], "java -XX:+UseSerialGC -Xshare:auto Hello.java"),
    program("node", &["node"], "node script.js"),
    ending(
        9,
        program(
            "perl",
            &["perl"],
            "perl -e 'print $], scalar(@INC), \"\\n\"; $SIG{USR1} = sub { print \"signal\\n\" }; kill USR1 => $$; print `echo child`; if (!fork) { exit 5 } wait; print $? >> 8, \"\\n\"; $! = 9; die \"on purpose\"'",
        ),
    ),
    program(
        "git",
        &["git"],
        "export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'; git -c init.defaultBranch=m init -q r && cd r && cp ../words.txt . && git add . && git -c user.name=a -c user.email=a@b commit -qm x && git log --stat && git fsck",
    ),
    program(
        "sqlite3",
        &["sqlite3"],
        "sqlite3 f.db 'create table t(a,b); insert into t values(1,2),(3,4); select sum(a*b) from t; pragma integrity_check;'",
    ),
    program(
        "openssl",
        &["openssl"],
        "openssl dgst -sha512 words.txt; openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -pass pass:x -in words.txt | sha256sum; openssl version",
    ),
    program(
        "curl",
        &["curl"],
        "curl -sS file://$PWD/words.txt | sha256sum; curl -sS file:///never-there 2>&1; true",
    ),
    program(
        "ssh",
        &["ssh"],
        "ssh -V 2>&1; ssh -G -F none host.invalid | grep -c .",
    ),
    program(
        "jq, bc",
        &["jq", "bc"],
        "echo '{\"a\":[1,2]}' | jq '.a|add'; echo 'scale=60; 4*a(1)' | bc -l",
    ),
    program("ps", &["ps"], "ps -o pid=,args= -p 1 | wc -l; ps --version"),
    program(
        "gdb",
        &["gdb"],
        "gcc -g -o hello hello.c && gdb -nx -batch -ex 'break main' -ex run -ex 'print argc' -ex kill ./hello 2>&1 | grep -v -e 'warning: ' -e '^Using host' -e '^\\[' | sed 's/0x[0-9a-f]*/ADDRESS/g'",
    ),
    program(
        "strace",
        &["strace"],
        "strace -qq -e trace=write -o trace.txt echo traced; cat trace.txt",
    ),
    program(
        "static busybox",
        &["busybox"],
        "busybox sh -c 'echo $((6*7)); busybox wc words.txt; busybox sha256sum words.txt'",
    ),
    ending(
        3,
        program(
            "musl, dynamic",
            &["musl-gcc"],
            "musl-gcc -o hello hello.c && ./hello",
        ),
    ),
    ending(
        3,
        program(
            "musl, static",
            &["musl-gcc"],
            "musl-gcc -static -o hello hello.c && ./hello",
        ),
    ),
    ending(
        3,
        program(
            "static position-independent",
            &["gcc"],
            "gcc -static-pie -o hello hello.c && ./hello",
        ),
    ),
    ending(
        3,
        program(
            "32-bit",
            &["test -e /usr/lib32/crt1.o"],
            "gcc -m32 -o hello hello.c && ./hello",
        ),
    ),
    program(
        "setuid",
        &["test $(id -u) = 0", "setpriv"],
        "cp $(command -v id) i && chown 1 i && chmod u+s i && ./i -u && setpriv --reuid 12345 --clear-groups ./i -u",
    ),
];

/// Programs whose start is timed, as short as they can be.
pub const STARTS: &[&[&str]] = &[
    &["true"],
    &["sh", "-c", ":"],
    &["bash", "-c", ":"],
    &["ls", "/"],
    &["awk", "BEGIN {}"],
    &["perl", "-e", "1"],
    &["python3", "-c", "pass"],
    &["git", "--version"],
    &["gcc", "--version"],
    &["openssl", "version"],
    &["sqlite3", ":memory:", "select 1"],
    &["busybox", "true"],
    &["node", "-e", ""],
    &["java", "-version"],
];

/// Files the programs find beside them.
pub fn file(name: &str) -> String {
    let words = "the quick brown fox jumps over a lazy dog while seven wizards vex the queen";
    match name {
        "words.txt" => (0..200)
            .map(|i| {
                let mut words: Vec<_> = words.split(' ').collect();
                let length = words.len();
                words.rotate_left(i % length);
                format!("{} {i}\n", words.join(" "))
            })
            .collect(),
        "numbers.csv" => (0..500).map(|i| format!("{i},{}\n", f64::from(i) * 0.37)).collect(),
        "hello.c" => "#include <stdio.h>\n#ifdef OMP\nint main(void)\n{\n    long sum = 0;\n    #pragma omp parallel for reduction(+:sum)\n    \
                      for (long i = 0; i < 1000000; i++) sum += i % 7;\n    printf(\"%ld\\n\", sum);\n    return 0;\n}\n#else\n\
                      int main(int argc, char **argv)\n{\n    (void)argv;\n    printf(\"hello %d\\n\", argc);\n    return 3;\n}\n#endif\n"
            .into(),
        "Hello.java" => "public class Hello {\n    public static void main(String[] a) throws Exception {\n        \
                         Thread t = new Thread(() -> System.out.println(\"thread\"));\n        t.start();\n        t.join();\n        \
                         System.err.println(System.getProperty(\"java.version\"));\n        \
                         System.out.println(java.util.stream.IntStream.range(0, 1000).parallel().sum());\n    }\n}\n"
            .into(),
        _ => "const { Worker, isMainThread } = require('worker_threads');\nif (isMainThread) {\n  console.log(process.version);\n  \
              console.log(require('crypto').createHash('sha256').update('x').digest('hex'));\n  \
              console.log(require('child_process').execSync('echo child').toString());\n  new Worker(__filename);\n} else {\n  \
              console.error('worker');\n}\n"
            .into(),
    }
}
