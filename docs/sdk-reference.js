/**
 * The reference of the packages, from their types and doc comments: one page for each entry point. Writing it fails if an
 * exported name has no doc comment or is not in the reference, or if a type is used and not exported.
 */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { Application, Converter, LogLevel, Logger, PageEvent, ReferenceType, ReflectionKind, TypeScript as ts, UnionType } from "typedoc";

const PACKAGES = ["client", "react"];
/** Public names of inner classes, which other classes extend, and of inner types. */
const PUBLIC_NAMES = {
  ConnectionHost: "CoroomConnection",
  RoomConnection: "RoomConnection",
  YjsProvider: "CoroomProvider",
  AnyRoom: "OpenRoom",
};
const DOCUMENTED = ["Class", "Interface", "Function", "TypeAlias", "Variable", "Method", "Property", "Accessor", "Constructor"];

/** A field of a variant or of an inline type: the comment of the variant describes it. */
const PART_OF_TYPE = /\.__type\..* does not have any documentation$/;

/** @typedef {{ readonly name: string, readonly source: string }} EntryPoint `source`: its file. */

/** @returns {EntryPoint[]} Every entry point that the packages export. */
export function entryPoints() {
  return PACKAGES.flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return Object.entries(exports).flatMap(([path, { types }]) =>
      types === undefined
        ? []
        : [{ name: join(name, path), source: join(folder, types.replace(/^\.\/dist\/(client\/)?/, "").replace(/\.d\.ts$/, ".ts")) }],
    );
  });
}

/** Reports of TypeDoc. */
class Reports extends Logger {
  level = LogLevel.Warn;
  /** @type {string[]} */
  lines = [];

  /** @param {string} message @param {LogLevel} level @override */
  log(message, level) {
    if (level >= LogLevel.Warn) this.lines.push(message);
  }
}

/**
 * Writes a page for each entry point, named after it. Throws with one line for each problem.
 * @param {readonly EntryPoint[]} entries @param {string} folder
 */
export async function writeSdkReference(entries, folder) {
  const app = await Application.bootstrapWithPlugins(
    {
      plugin: ["typedoc-plugin-markdown"],
      entryPoints: entries.map(({ source }) => source),
      outputs: [{ name: "markdown", path: resolve(folder) }],
      logLevel: "Warn",
      outputFileStrategy: "modules",
      readme: "none",
      disableGit: true,
      disableSources: true,
      excludeInternal: true,
      excludePrivate: true,
      excludeExternals: true,
      skipErrorChecking: true, // `npm run check` does.
      validation: { notExported: true, notDocumented: true, invalidLink: true },
      requiredToBeDocumented: DOCUMENTED,
      packagesRequiringDocumentation: ["coroom", "@coroom/client", "@coroom/react"],
      kindSortOrder: ["Class", "Function", "Interface", "TypeAlias", "Constructor", "Property", "Method"],
      groupOrder: ["Functions", "Classes", "*"],
      hidePageHeader: true,
      hideBreadcrumbs: true,
      useCodeBlocks: true,
      parametersFormat: "table",
      classPropertiesFormat: "table",
      interfacePropertiesFormat: "table",
      typeAliasPropertiesFormat: "table",
      typeDeclarationFormat: "table",
      tableColumnSettings: { hideDefaults: true, hideModifiers: true },
    },
    [],
  );
  const reports = new Reports();
  app.logger = reports;
  const { config } = ts.readConfigFile("tsconfig.json", ts.sys.readFile);
  const files = entries.map(({ source }) => source);
  const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], exclude: [], files }, ts.sys, process.cwd());
  app.options.setCompilerOptions(parsed.fileNames, parsed.options, undefined);

  const unions = new Map();
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    const union = unionOf(context, reflection);
    if (union !== undefined) unions.set(reflection, union);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, () => unions.forEach((type, reflection) => (reflection.type = type)));
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => simplify(project));
  app.renderer.on(PageEvent.END, (page) => {
    page.contents = shortened(page.contents);
  });
  const sources = app.getEntryPoints();
  if (sources === undefined) throw new Error(`cannot read the types of the packages:\n${reports.lines.join("\n")}`);
  const project = app.converter.convert(sources);
  app.validate(project);
  reports.lines = reports.lines.filter((line) => !PART_OF_TYPE.test(line));
  reports.lines.push(...sources.flatMap((source) => missingIn(project, source)));
  if (reports.lines.length > 0) throw new Error(`the reference of the packages is incomplete:\n${reports.lines.join("\n")}`);
  await app.generateOutputs(project);
  if (reports.lines.length > 0) throw new Error(`cannot write the reference of the packages:\n${reports.lines.join("\n")}`);
}

/** Exported names that the reference leaves out, for example because they are marked as internal. */
function missingIn(project, { program, sourceFile }) {
  const checker = program.getTypeChecker();
  const symbol = checker.getSymbolAtLocation(sourceFile);
  const name = /@module (\S+)/.exec(sourceFile.text)?.[1];
  const page = project.children?.find((child) => child.name === name) ?? project; // With one entry point, it is the project.
  const shown = new Set(page.children?.map((child) => child.name));
  return checker
    .getExportsOfModule(symbol)
    .filter((exported) => !shown.has(exported.name))
    .map((exported) => `${exported.name}, exported by ${name}, is not in the reference`);
}

/** The names in a union such as `keyof typeof ROOM_MODES`. Undefined for other types. */
function unionOf(context, reflection) {
  const node = context.getSymbolFromReflection(reflection)?.declarations?.[0];
  return node !== undefined && ts.isTypeAliasDeclaration(node) && ts.isTypeOperatorNode(node.type)
    ? context.converter.convertType(context, context.checker.getTypeAtLocation(node.type))
    : undefined;
}

/** Leaves out from where a member is inherited, and shows a getter as the property that it is for a caller. */
function simplify(project) {
  for (const reflection of project.getReflectionsByKind(ReflectionKind.All)) {
    for (const field of ["inheritedFrom", "overwrites", "implementationOf", "extendedTypes", "implementedTypes", "typeHierarchy"])
      delete reflection[field];
    if (reflection.type instanceof UnionType) listVariants(reflection);
    if (reflection.type !== undefined) reflection.type = withPublicNames(reflection.type, project);
    if (reflection.name === "__namedParameters") reflection.name = "options";
    const { getSignature } = reflection;
    if (getSignature === undefined) continue;
    Object.assign(reflection, { kind: ReflectionKind.Property, type: getSignature.type, comment: getSignature.comment });
    delete reflection.getSignature;
  }
}

/** Lists the comments of a union's variants, by their `kind`, after the comment of the type. */
function listVariants({ comment, type }) {
  const variants = type.types.map(({ declaration }, index) => {
    const kind = declaration?.children?.find(({ name }) => name === "kind")?.type;
    const summary = type.elementSummaries?.[index] ?? [];
    return kind === undefined || summary.length === 0 ? [] : [{ kind: "text", text: `\n- \`${kind.value}\`: ` }, ...summary];
  });
  comment?.summary.push({ kind: "text", text: "\n" }, ...variants.flat());
}

function withPublicNames(type, project) {
  if (type instanceof UnionType) return new UnionType(type.types.map((one) => withPublicNames(one, project)));
  const name = type instanceof ReferenceType && type.reflection === undefined ? PUBLIC_NAMES[type.name] : undefined;
  if (name === undefined) return type;
  const target = project
    .getReflectionsByKind(ReflectionKind.Class | ReflectionKind.TypeAlias)
    .find((reflection) => reflection.name === name);
  return Object.assign(ReferenceType.createResolvedReference(name, target, project), { typeArguments: type.typeArguments });
}

/** Without anchors in tables, which are HTML, without results and types that say nothing, and without names of rules. */
function shortened(text) {
  return text
    .replaceAll(/<a id="[^"]*"><\/a> /g, "")
    .replaceAll(/^#+ Returns\n\n`void`\n\n?/gm, "")
    .replaceAll(/^```ts\ntype \S+ = object;\n```\n\n/gm, "")
    .replaceAll(/ Rules [A-Z]+\d+ to [A-Z]+\d+\./g, "");
}
