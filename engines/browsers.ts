/**
 * Finds Chromium and Firefox for the browser tests: the machine's, or an unpacked one with its libraries and a font.
 * Start it at `path` with the environment `{ ...process.env, ...env }`.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { isErrno } from "../shared/io/system-error.ts";
import { BINARIES, type BinarySpec } from "./binaries.ts";
import { findBinary, type Binary, type FindOptions } from "./find.ts";

/** Throws an `EngineError` of kind `binary-missing` if the machine has no Chromium and cannot get one. */
export function findChromium(options: FindOptions = {}): Promise<Binary> {
  return findBrowser(BINARIES.chromium, options);
}

/** Throws an `EngineError` of kind `binary-missing` if the machine has no Firefox and cannot get one. */
export function findFirefox(options: FindOptions = {}): Promise<Binary> {
  return findBrowser(BINARIES.firefox, options);
}

async function findBrowser(spec: BinarySpec, options: FindOptions): Promise<Binary> {
  const binary = await findBinary(spec, options);
  return binary.unpackedIn === undefined
    ? binary
    : { ...binary, env: { ...binary.env, FONTCONFIG_FILE: fontsConfigIn(binary.unpackedIn) } };
}

/**
 * Fontconfig reads /etc/fonts, which may be missing on a machine without a browser. A page without fonts shows no text.
 */
function fontsConfigIn(root: string): string {
  const file = join(root, "fonts.conf");
  const wanted = fontsConfigText(root);
  if (readOr(file, "") !== wanted) writeFileSync(file, wanted);
  return file;
}

function readOr(file: string, fallback: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return fallback;
    throw error;
  }
}

/** The fontconfig file for unpacked packages: their fonts and the machine's, under the generic names that pages use. */
function fontsConfigText(root: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${escaped(root)}/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${escaped(root)}/font-cache</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>serif</family><prefer><family>DejaVu Serif</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
