/** Serves files of a folder at /, or one page at a path of its own. No file outside the folder is ever read. */

import { readFile, realpath } from "node:fs/promises";
import { extname, join, sep } from "node:path";

import { isErrno } from "../../../shared/io/system-error.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import type { RouteRequest } from "../../http/requests.ts";
import { type HttpRoute, NOT_FOUND } from "../../http/route-table.ts";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
};

/** No routes for an empty folder name. */
export function staticRoutes(folder: string): HttpRoute[] {
  return folder === "" ? [] : [{ method: "get", path: "/*", answer: ({ path }) => serveFile(folder, path) }];
}

/**
 * The demo page at /. Its folder also contains the operations console, which this route serves under an encoded path
 * such as /%6fperations/.
 */
export function demoPageRoutes(folder: string): HttpRoute[] {
  return staticRoutes(folder).map((route) => ({ ...route, answer: async (request) => unframed(await route.answer(request)) }));
}

/** Forbids other pages to frame a page with commands. A page laid over it could make people press invisible buttons. */
const UNFRAMED = { "content-security-policy": "frame-ancestors 'none'", "referrer-policy": "no-referrer" };

/** Serves one page, or a site, at a path such as /operations. */
export function pageRoutes(at: string, folder: string): HttpRoute[] {
  const serve = async ({ path }: Pick<RouteRequest, "path">): Promise<HttpAnswer> => {
    const name = path.slice(at.length);
    const found = await serveFile(folder, name);
    const answer = found === NOT_FOUND ? await serveInstead(folder, name, path) : found;
    return unframed(answer);
  };
  return [
    { method: "get", path: at, answer: () => ({ status: 308, headers: { location: `${at}/` } }) },
    { method: "get", path: `${at}/*`, answer: serve },
  ];
}

function unframed(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, ...UNFRAMED } };
}

/** People type the address of a page without its ending. A site may have a page for addresses that do not exist. */
async function serveInstead(folder: string, name: string, path: string): Promise<HttpAnswer> {
  const isPage = extname(name) === "" && !name.endsWith("/") && (await serveFile(folder, `${name}.html`)) !== NOT_FOUND;
  if (isPage) return { status: 308, headers: { location: `${path}.html` } };
  const missing = await serveFile(folder, "/404.html");
  return missing === NOT_FOUND ? NOT_FOUND : { ...missing, status: 404 };
}

async function serveFile(folder: string, path: string): Promise<HttpAnswer> {
  const name = decodePath(path);
  if (name === undefined) return NOT_FOUND;
  try {
    const root = await realpath(folder);
    const file = await realpath(join(root, name.endsWith("/") ? `${name}index.html` : name)); // Resolves links before the check.
    if (!file.startsWith(root + sep)) return NOT_FOUND;
    // The names of built files under assets/ contain a hash of their content.
    const cacheControl = name.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache";
    return {
      status: 200,
      headers: {
        "content-type": CONTENT_TYPES[extname(file)] ?? "application/octet-stream",
        "cache-control": cacheControl,
      },
      body: await readFile(file),
    };
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG")) return NOT_FOUND;
    throw error;
  }
}

function decodePath(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path);
    return decoded.includes("\0") ? undefined : decoded;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
