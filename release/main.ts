/**
 * `npm run release -- VERSION [--dry-run]`: writes the version and the changelogs, builds and packs the three packages
 * with their SBOMs, commits and tags. It publishes nothing: it prints the commands for that. A dry run does the same in a
 * copy of the repository, which it removes. A failed check leaves everything as it was.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const USAGE =
  "npm run release -- VERSION [--dry-run]\n\n  VERSION    such as 0.3.0 or 0.3.0-rc.1\n  --dry-run  in a copy, which is removed";
/** Folders of the packages, in the order in which they are published. */
const PACKAGES = ["client", "react", "."] as const;
const OUTPUT = "release/dist";
/** Files that name the version, and how they do. */
const NAMING = ["*package.json", "deploy", "docs/operations"];
const NAMED = /("version": "|"@coroom\/\w+": "\^|\bcoroom:|newTag: "|[vV]ersion: ")/;

type PackageFile = { readonly name: string; readonly version: string };

/** A problem that the person who releases can solve: printed without a stack trace. */
class ReleaseError extends Error {}

function release(root: string, version: string, print: (text: string) => void): void {
  const git = (...args: string[]): string => run("git", args, root);
  const at = (path: string): string => join(root, path);
  const former = packageAt(root).version;

  if (git("status", "--porcelain") !== "") throw new ReleaseError("the work tree has changes. Commit or remove them first.");
  if (git("tag", "--list", `v${version}`) !== "") throw new ReleaseError(`the tag v${version} exists. Choose a higher version.`);
  const changelogs = new Map(PACKAGES.map((folder) => [at(join(folder, "CHANGELOG.md")), folder]));
  const moved = [...changelogs.keys()].map((file) => [file, datedChangelog(file, readFileSync(file, "utf8"), version)] as const);

  for (const [file, text] of moved) writeFileSync(file, text);
  for (const file of git("ls-files", ...NAMING)
    .split("\n")
    .map(at)) {
    const text = readFileSync(file, "utf8");
    // By text, because `npm version` would lay out the files anew and leaves the ranges of peers and examples as they are.
    const renamed = text.replaceAll(new RegExp(`${NAMED.source}${former.replaceAll(".", "\\.")}(?=["\\s])`, "g"), `$1${version}`);
    if (renamed !== text) writeFileSync(file, renamed);
  }
  // From here on, the test of upgrades runs this release beside later changes.
  writeFileSync(at("release/previous.json"), `{ "commit": "${git("rev-parse", "HEAD")}" }\n`);
  run("npm", ["install", "--package-lock-only", "--ignore-scripts", "--prefer-offline"], root);
  run("npm", ["run", "build"], root);

  rmSync(at(OUTPUT), { recursive: true, force: true });
  mkdirSync(at(OUTPUT), { recursive: true });
  const packed = PACKAGES.map((folder) => {
    const tarball = run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", at(OUTPUT), at(folder)], root);
    writeFileSync(at(`${OUTPUT}/${tarball.replace(/tgz$/, "cdx.json")}`), sbom(at(folder), root));
    return tarball;
  });
  const sums = readdirSync(at(OUTPUT)).map((name) => `${sha256(at(`${OUTPUT}/${name}`))}  ${name}\n`);
  writeFileSync(at(`${OUTPUT}/SHA256SUMS`), sums.join(""));

  git("commit", "--quiet", "--all", "--message", `release: publish version ${version}`);
  git("tag", "--annotate", "--message", `Coroom ${version}`, `v${version}`);
  print(`${readdirSync(at(OUTPUT)).join("\n")}\n\n${publishing(version, packed)}`);
}

/** Dates the entries under "Unreleased". A section that already names the version stays as it is. Entries under "Unreleased" beside it are an error. */
export function datedChangelog(file: string, text: string, version: string, today = new Date()): string {
  const section = (title: string): string | undefined =>
    text
      .split(/^## /m)
      .find((one) => one === title || one.startsWith(`${title}\n`))
      ?.slice(title.length);
  const hasVersion = section(version)?.trim();
  const isOpen = section("Unreleased")?.trim();
  if (hasVersion && isOpen)
    throw new ReleaseError(
      `${file} has a section "## ${version}" and entries under "## Unreleased". Move them into the section, or choose a higher version.`,
    );
  if (hasVersion) return text;
  if (!isOpen) throw new ReleaseError(`${file} has no entry under "## Unreleased". Write what changed for users, or "No changes."`);
  return text.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version} - ${today.toISOString().slice(0, 10)}`);
}

/**
 * The production dependencies of a package, in CycloneDX. `npm sbom` runs on the package without its development
 * dependencies and peers, with the versions of the lock file. In the workspace, `npm sbom --omit dev` leaves out
 * packages such as yjs that are dependencies of one workspace and peers of another.
 */
function sbom(packageFolder: string, root: string): string {
  const folder = mkdtempSync(join(tmpdir(), "coroom-sbom-"));
  try {
    copyFileSync(join(packageFolder, "package.json"), join(folder, "package.json"));
    copyFileSync(join(root, "package-lock.json"), join(folder, "package-lock.json"));
    run("npm", ["pkg", "delete", "devDependencies", "peerDependencies", "workspaces", "scripts"], folder);
    run("npm", ["install", "--package-lock-only", "--ignore-scripts", "--offline"], folder);
    const made = JSON.parse(run("npm", ["sbom", "--package-lock-only", "--sbom-format", "cyclonedx"], folder)) as {
      metadata: { component: { name: string } };
    };
    made.metadata.component.name = packageAt(folder).name; // npm takes the folder's name.
    return `${JSON.stringify(made, null, 2)}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `npm publish` proves the origin of a package only in a CI job with an identity token. */
function publishing(version: string, tarballs: readonly string[]): string {
  return [
    "To publish, in a CI job with an identity token (OIDC) for npm's provenance:",
    ...tarballs.map((name) => `  npm publish ${OUTPUT}/${name} --provenance --access public${version.includes("-") ? " --tag next" : ""}`),
    `  docker build -f deploy/Dockerfile -t registry.example/coroom:${version} . && docker push registry.example/coroom:${version}`,
    `  helm package deploy/helm && helm push coroom-${version}.tgz oci://registry.example/charts`,
    `  git push origin HEAD v${version}`,
    `Attach the files in ${OUTPUT} to the release. To undo before publishing: git tag -d v${version} && git reset --hard HEAD~1`,
  ].join("\n");
}

/** A clone of HEAD with the installed packages. The tag and the commit disappear with it. */
function copyOf(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), "coroom-release-"));
  run("git", ["clone", "--quiet", "--shared", root, copy], root);
  symlinkSync(resolve(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

function packageAt(folder: string): PackageFile {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageFile;
}

function sha256(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

/** Returns what the program printed. */
function run(program: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 64 * 2 ** 20 }).trim();
  } catch (cause) {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string };
    throw new ReleaseError(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause });
  }
}

function main(args: string[]): void {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { "dry-run": { type: "boolean", default: false } } });
  const [version = ""] = positionals;
  if (!/^\d+\.\d+\.\d+(?:-[0-9a-z.]+)?$/.test(version)) throw new ReleaseError(USAGE);
  const root = resolve(".");
  if (!existsSync(join(root, "node_modules"))) throw new ReleaseError("node_modules is missing. Run npm ci first.");
  const at = values["dry-run"] ? copyOf(root) : root;
  try {
    release(at, version, (text) => console.log(text));
    if (values["dry-run"]) console.log("\ndry run: nothing was changed here");
  } finally {
    if (values["dry-run"]) rmSync(at, { recursive: true });
  }
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof ReleaseError ? error.message : error);
    process.exitCode = 1;
  }
}
