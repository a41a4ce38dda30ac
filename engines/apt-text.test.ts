import { expect, test } from "vitest";
import { parseCodename, parseAptError, parseMirror, parseSimulatedInstall, sourcesList } from "./apt-text.ts";

test("a simulated install lists the packages it would add, but never the C library or what is not needed", () => {
  const printed = [
    "Reading package lists...",
    "Inst libjemalloc2 (5.3.0-1 Debian:12.12/oldstable [amd64])",
    "Inst libc6 [2.36-9] (2.36-9+deb12u13 Debian:12.12/oldstable [amd64]) [base:amd64 ]",
    "Inst libfoo:i386 (1.0 Debian:12.12/oldstable [i386])",
    "Inst redis-server [5:7.0.14-1] (5:7.0.15-1 Debian-Security:12/oldstable-security [amd64])",
    "Conf redis-server (5:7.0.15-1 Debian-Security:12/oldstable-security [amd64])",
  ].join("\n");
  expect(parseSimulatedInstall(printed)).toEqual(["libjemalloc2", "libfoo:i386", "redis-server"]);
  expect(parseSimulatedInstall(printed, /^lib(foo|never)$/)).toEqual(["libjemalloc2", "redis-server"]);
});

test("the mirror is the source of the machine's own suite, even if apt has other sources", () => {
  const targets = [
    "https://packages.example.org/db/ bookworm main",
    "https://mirror.example.org/debian-security/ bookworm-security main",
    "https://mirror.example.org/debian/ bookworm-updates main",
    "https://mirror.example.org/debian/ bookworm main",
  ].join("\n");
  expect(parseMirror(targets, "bookworm")).toBe("https://mirror.example.org/debian");
  expect(parseMirror("http://archive.example.org/ubuntu/ noble main", "noble")).toBeUndefined();
  expect(parseMirror("", "")).toBeUndefined();
});

test("the codename is parsed with and without quotes", () => {
  expect(parseCodename('NAME="Debian"\nVERSION_CODENAME=bookworm\n')).toBe("bookworm");
  expect(parseCodename('VERSION_CODENAME="noble"')).toBe("noble");
  expect(parseCodename("ID=alpine")).toBe("");
});

test("a newer suite is trusted only with Debian's own keyring", () => {
  expect(sourcesList("http://mirror.example.org/debian", "sid")).toMatch(
    /^deb \[signed-by=\S*debian-archive-keyring.gpg\] http:\/\/mirror.example.org\/debian sid main\n$/,
  );
});

test("an error has priority over a warning as the reason, and empty output gives none", () => {
  expect(parseAptError("W: Some index files are old\nE: Failed to fetch x\nE: Some index files failed\n")).toBe("Failed to fetch x");
  expect(parseAptError("W: Failed to fetch x\n")).toBe("Failed to fetch x");
  expect(parseAptError("")).toBeUndefined();
});
