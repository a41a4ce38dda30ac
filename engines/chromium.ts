/**
 * A Chromium for the browser tests: the machine's, or one unpacked beside its libraries and a font.
 * Launch it with `executablePath: path` and `env: { ...process.env, ...env }`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARIES } from "./binaries.ts";
import { findBinary, type Binary, type FindOptions } from "./find.ts";
import { fontsConfigText } from "./fonts-config.ts";
import { isErrno } from "../shared/io/errno.ts";

export async function findChromium(options: FindOptions = {}): Promise<Binary> {
  const binary = await findBinary(BINARIES.chromium, options);
  return binary.unpackedIn === undefined
    ? binary
    : { ...binary, env: { ...binary.env, FONTCONFIG_FILE: fontsConfigIn(binary.unpackedIn) } };
}

/** Fontconfig reads /etc/fonts, which a machine without a browser need not have; a page without fonts shows no text. */
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
