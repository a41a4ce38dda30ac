/** An entry point of a package, and its file. */
export type EntryPoint = { readonly name: string; readonly source: string };

export function entryPoints(): EntryPoint[];
export function writeSdkReference(entries: readonly EntryPoint[], folder: string): Promise<void>;
