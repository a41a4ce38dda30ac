/**
 * The documentation site: `npm run build:docs` writes docs/.vitepress/dist, which the local system serves at /docs. Pages are
 * the documents of the repository themselves, so a page names files and links to them as GitHub shows them. The build
 * turns these into links of the site, and fails for a page, heading or file that does not exist.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

import { defineConfig, type MarkdownOptions } from "vitepress";

import { filesOf, otherDocuments, PAGES, SECTIONS, titleOf } from "./pages.ts";

type Markdown = Parameters<NonNullable<MarkdownOptions["config"]>>[0];

const ROOT = join(import.meta.dirname, "../..");
const REPOSITORY = "https://github.com/coroom/coroom/blob/main/";
const DESCRIPTION = "Coroom is an open-source real-time layer for collaborative editors: durable edits and presence over one WebSocket.";
/** Headings by page, and the headings that links name: filled while pages are rendered, compared at the end. */
const headings = new Map<string, Set<string>>();
const named: { readonly page: string; readonly target: string; readonly heading: string }[] = [];

export default defineConfig({
  srcDir: "..",
  base: "/docs/",
  title: "Coroom",
  description: DESCRIPTION,
  srcExclude: [".coroom/**", "release/dist/**", ...otherDocuments()],
  rewrites: PAGES,
  lastUpdated: false,
  appearance: true,
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    html: false,
    attrs: { disable: true },
    config: linkFiles,
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" }, // The default themes have colours with a contrast below 4.5.
  },
  vite: { build: { chunkSizeWarningLimit: 2_000 } }, // The search index of all pages is one chunk; the warning would stand in the output of npm start.
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: SECTIONS.map(({ title, files, collapsed }) => ({
      text: title,
      ...(collapsed === true ? { collapsed } : {}),
      items: files.map((file) => ({ text: titleOf(file), link: linkTo(file) })),
    })),
    nav: SECTIONS.filter(({ nav }) => nav !== undefined).map(({ nav, files }) => ({ text: nav!, link: linkTo(files[0]!) })),
  },
  buildEnd({ outDir }) {
    const missing = named.filter(({ target, heading }) => !headings.get(target)?.has(heading));
    if (missing.length > 0)
      throw new Error(missing.map(({ page, target, heading }) => `${page} links to ${target}#${heading}, which does not exist`).join("\n"));
    writeForLanguageModels(outDir);
  },
});

function linkTo(file: string): string {
  return `/${PAGES[file]!}`;
}

/** Makes links of relative links and of file names in backticks. */
function linkFiles(markdown: Markdown): void {
  markdown.core.ruler.push("link-files", ({ tokens, env, Token }) => {
    const page = posix.relative(ROOT, (env as { realPath?: string; path: string }).realPath ?? (env as { path: string }).path);
    const anchors = new Set<string>();
    headings.set(page, anchors);
    for (const block of tokens) {
      if (block.type === "heading_open") anchors.add(block.attrGet("id") ?? "");
      if (block.type !== "inline" || block.children === null) continue;
      let isLinked = false;
      block.children = block.children.flatMap((token) => {
        if (token.type === "link_open") {
          isLinked = true;
          token.attrSet("href", hrefOf(page, token.attrGet("href") ?? ""));
        }
        if (token.type === "link_close") isLinked = false;
        if (token.type !== "code_inline" || isLinked) return [token];
        const href = hrefOfFile(page, token.content);
        if (href === undefined) return [token];
        const [open, close] = [new Token("link_open", "a", 1), new Token("link_close", "a", -1)];
        open.attrSet("href", href);
        if (!href.startsWith("/")) return [open, token, close];
        const text = new Token("text", "", 0);
        text.content = titleOf(token.content in PAGES ? token.content : posix.join(posix.dirname(page), token.content));
        return [open, text, close];
      });
    }
  });
}

function hrefOf(page: string, href: string): string {
  if (/^[a-z]+:/.test(href)) return href;
  const [path = "", heading] = href.split("#");
  const target = path === "" ? page : posix.join(posix.dirname(page), path);
  if (target in PAGES) {
    if (heading !== undefined) named.push({ page, target, heading });
    return path === "" ? href : `${linkTo(target)}${heading === undefined ? "" : `#${heading}`}`;
  }
  if (!existsSync(join(ROOT, target))) throw new Error(`${page} links to ${href}, which does not exist`);
  return `${REPOSITORY}${target}`;
}

/** A path with a folder, from the root or from the page's folder. */
function hrefOfFile(page: string, name: string): string | undefined {
  if (!/^(?:[\w.@-]+\/)*[\w.@-]+\.[a-z]+$/.test(name)) return undefined;
  const target = [name, posix.join(posix.dirname(page), name)].find((path) => existsSync(join(ROOT, path)));
  if (target === undefined) return undefined;
  if (target === page) return undefined;
  if (target in PAGES) return linkTo(target);
  return name.includes("/") ? `${REPOSITORY}${target}` : undefined;
}

/** llms.txt, and each page as it was written: what https://llmstxt.org proposes. */
function writeForLanguageModels(outDir: string): void {
  const sections = SECTIONS.map(
    ({ title, files }) => `## ${title}\n\n${files.map((file) => `- [${titleOf(file)}](/docs/${PAGES[file]!})`).join("\n")}\n`,
  );
  writeFileSync(join(outDir, "llms.txt"), `# Coroom\n\n> ${DESCRIPTION}\n\n${sections.join("\n")}`);
  for (const file of filesOf()) {
    const copy = join(outDir, PAGES[file]!);
    mkdirSync(dirname(copy), { recursive: true });
    writeFileSync(copy, readFileSync(join(ROOT, file)));
  }
}
