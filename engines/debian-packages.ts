/**
 * Unpacks Debian packages without root. apt uses its own list and cache folders, and dpkg-deb unpacks the downloads.
 * The machine's package database is only read.
 */

import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { INDEX_TARGET_FORMAT, parseCodename, parseMirror, parseSimulatedInstall, sourcesList } from "./apt-text.ts";
import type { BinarySpec } from "./binaries.ts";
import { ProgramError, runProgram } from "./run-program.ts";

export type PackageSource = { readonly kind: "own-suite" } | { readonly kind: "newer-suite"; readonly suite: string };

type PackagesToUnpack = Pick<BinarySpec, "packages" | "unneeded">;

const UPDATE_MS_MAX = 180_000;
const DOWNLOAD_MS_MAX = 600_000;

/** Unpacks the packages and their missing dependencies under `root`. Throws a `ProgramError` on failure. */
export async function unpackPackages(spec: PackagesToUnpack, source: PackageSource, root: string): Promise<void> {
  const work = `${resolve(root)}.apt`;
  await mkdir(join(work, "lists/partial"), { recursive: true });
  await mkdir(join(work, "cache/archives/partial"), { recursive: true });
  await mkdir(join(work, "debs"), { recursive: true });
  try {
    const apt = await aptIn(work, source);
    // An unreachable third-party source fails the update, but the needed packages may still be available.
    const update = await apt(["update"], UPDATE_MS_MAX).then(
      () => undefined,
      (error: unknown) => error,
    );
    try {
      const wanted = source.kind === "own-suite" ? await closure(apt, spec) : spec.packages;
      await apt(["download", ...wanted], DOWNLOAD_MS_MAX);
    } catch (error) {
      throw update ?? error; // Without package lists nothing is found, so the update's failure is the reason.
    }
    await unpackAll(join(work, "debs"), root);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The packages that an install would add. `--reinstall` includes the named packages even when they are installed. */
async function closure(apt: Apt, { packages, unneeded }: PackagesToUnpack): Promise<readonly string[]> {
  const printed = await apt(["install", "--simulate", "--reinstall", "--no-install-recommends", ...packages], UPDATE_MS_MAX);
  return parseSimulatedInstall(printed, unneeded);
}

type Apt = (args: readonly string[], msMax: number) => Promise<string>;

async function aptIn(work: string, source: PackageSource): Promise<Apt> {
  const options = [
    `Dir::State::Lists=${join(work, "lists")}`,
    `Dir::Cache=${join(work, "cache")}`,
    "APT::Sandbox::User=",
    "APT::Update::Error-Mode=any",
    "APT::Get::AllowUnauthenticated=false",
    "Acquire::Languages=none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=15",
    "Acquire::https::Timeout=15",
  ];
  if (source.kind === "newer-suite") {
    await writeFile(join(work, "sources.list"), sourcesList(await machineMirror(), source.suite));
    options.push(`Dir::Etc::SourceList=${join(work, "sources.list")}`, "Dir::Etc::SourceParts=/dev/null");
  }
  const flags = options.flatMap((option) => ["-o", option]);
  return (args, msMax) => runProgram("apt-get", ["-q", ...flags, ...args], { cwd: join(work, "debs"), msMax });
}

async function machineMirror(): Promise<string> {
  const targets = await runProgram("apt-get", ["indextargets", "--format", INDEX_TARGET_FORMAT, "Created-By: Packages"], { msMax: 20_000 });
  const codename = parseCodename(await readFile("/etc/os-release", "utf8"));
  const mirror = parseMirror(targets, codename);
  if (mirror === undefined) {
    const reason = `apt has no source for Debian's main archive of ${codename === "" ? "this machine's suite" : codename}`;
    throw new ProgramError(reason, `E: ${reason}. Install the program, or add the source to /etc/apt/sources.list.`);
  }
  return mirror;
}

async function unpackAll(debs: string, root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  for (const file of await readdir(debs)) await runProgram("dpkg-deb", ["-x", join(debs, file), root], { msMax: 120_000 });
}
