/** The production dependencies of a package of this repository, read from the lock file alone. SBOMs and licence checks use them. */

type LockEntry = {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};
/** By path, such as `node_modules/ws`. */
export type LockEntries = Readonly<Record<string, LockEntry>>;

/** Paths of the dependencies of the package in this folder ("" for the root), of theirs, and so on. Peers are not followed. */
export function productionTree(entries: LockEntries, folder: string): string[] {
  const found = new Set<string>();
  const visit = (path: string): void => {
    const { dependencies = {}, optionalDependencies = {} } = entries[path]!;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const dependency = pathOf(entries, path, name);
      if (dependency === undefined) throw new Error(`the lock file has no ${name}, which ${path} needs`);
      if (found.has(dependency)) continue;
      found.add(dependency);
      visit(dependency);
    }
  };
  visit(folder);
  return [...found].toSorted();
}

/** The path of a package's dependency. As Node searches: beside the package's own files, then in each folder above. */
export function pathOf(entries: LockEntries, from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("node_modules/") - 1))) {
    const path = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (entries[path] !== undefined) return path;
    if (at === "") return undefined;
  }
}
