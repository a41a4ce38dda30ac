/**
 * Debian packages without root: apt works on list and cache folders of its own, and dpkg-deb
 * unpacks what it downloads. The machine's package database is read, never written.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { INDEX_TARGET_FORMAT, parseCodename, parseMirror, parseSimulatedInstall, sourcesList } from "./apt-text.ts";
import { runProgram } from "./run-program.ts";

export type PackageSource = { readonly kind: "own-suite" } | { readonly kind: "newer-suite"; readonly suite: string };

const UPDATE_MS_MAX = 180_000;
const DOWNLOAD_MS_MAX = 600_000;

/** Unpacks the packages under `root`, with whatever they need that this machine has not. Throws a `ProgramError` where that fails. */
export async function unpackPackages(packages: readonly string[], source: PackageSource, root: string): Promise<void> {
  const work = `${resolve(root)}.apt`;
  await mkdir(join(work, "lists/partial"), { recursive: true });
  await mkdir(join(work, "cache/archives/partial"), { recursive: true });
  await mkdir(join(work, "debs"), { recursive: true });
  try {
    const apt = await aptIn(work, source);
    // A third-party source that does not answer fails the update, not the packages we need.
    const update = await apt(["update"], UPDATE_MS_MAX).then(
      () => undefined,
      (error: unknown) => error,
    );
    try {
      const wanted = source.kind === "own-suite" ? await closure(apt, packages) : packages;
      await apt(["download", ...wanted], DOWNLOAD_MS_MAX);
    } catch (error) {
      throw update ?? error; // Without the lists nothing can be found: the first failure is the reason.
    }
    await unpackAll(join(work, "debs"), root);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** What an install would add. `--reinstall` names the packages themselves even where they are installed. */
async function closure(apt: Apt, packages: readonly string[]): Promise<readonly string[]> {
  const printed = await apt(["install", "--simulate", "--reinstall", "--no-install-recommends", ...packages], UPDATE_MS_MAX);
  return parseSimulatedInstall(printed);
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
  return parseMirror(targets, parseCodename(await readFile("/etc/os-release", "utf8")));
}

async function unpackAll(debs: string, root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  for (const file of await readdir(debs)) await runProgram("dpkg-deb", ["-x", join(debs, file), root], { msMax: 120_000 });
}
