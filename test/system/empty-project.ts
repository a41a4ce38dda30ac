/** An empty project outside of the repository, into which npm installs packed packages without a network. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const COMMAND_MS_MAX = 120_000;

type PackageFile = { readonly dependencies?: Readonly<Record<string, string>> };

export class EmptyProject {
  readonly folder = mkdtempSync(join(tmpdir(), "coroom-project-"));

  constructor() {
    this.write("package.json", JSON.stringify({ name: "project", private: true, type: "module" }));
  }

  /**
   * Packs these folders of the repository, and these packages of its `node_modules` with all their dependencies.
   * Installs all tarballs as a user does, but offline. So the installation fails if a dependency is not declared.
   */
  install(workspaces: readonly string[], others: readonly string[]): void {
    const tarballs = join(this.folder, "tarballs");
    mkdirSync(tarballs);
    const declared = workspaces.flatMap((workspace) => dependenciesOf(resolve(workspace)));
    const folders = [...workspaces.map((workspace) => resolve(workspace)), ...closureOf([...declared, ...others])];
    this.#npm("pack", "--silent", "--ignore-scripts", "--offline", "--pack-destination", tarballs, ...folders);
    this.#npm("install", "--offline", "--no-audit", "--no-fund", ...readdirSync(tarballs).map((name) => join(tarballs, name)));
  }

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), content);
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), "utf8");
  }

  /** Runs a file with Node and returns what it printed. */
  node(file: string, ...args: readonly string[]): string {
    return execFileSync(process.execPath, [file, ...args], { cwd: this.folder, timeout: COMMAND_MS_MAX }).toString();
  }

  /** Runs a tool of the repository in the project. Throws with its output if it fails. */
  tool(name: string, ...args: readonly string[]): void {
    try {
      execFileSync(resolve("node_modules/.bin", name), args, { cwd: this.folder, stdio: "pipe", timeout: COMMAND_MS_MAX });
    } catch (cause) {
      throw new Error(`${name} failed:\n${String((cause as { stdout?: Buffer }).stdout)}`, { cause });
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #npm(...args: readonly string[]): void {
    execFileSync("npm", args, { cwd: this.folder, stdio: "pipe", timeout: COMMAND_MS_MAX });
  }
}

function dependenciesOf(folder: string): string[] {
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageFile;
  return Object.keys(dependencies);
}

/** Folders of these packages and of all their dependencies. */
function closureOf(names: readonly string[]): string[] {
  const folders = new Set<string>();
  const visit = (name: string): void => {
    const folder = resolve("node_modules", name);
    if (folders.has(folder) || !existsSync(folder)) return;
    folders.add(folder);
    dependenciesOf(folder).forEach(visit);
  };
  names.forEach(visit);
  return [...folders];
}
