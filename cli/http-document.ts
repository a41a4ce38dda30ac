/** Writes docs/HTTP.md: every HTTP operation of a gateway, from its OpenAPI document. `npm run http-doc` updates the file. */

import type { OpenApi } from "./openapi.ts";

type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
};
type Content = Readonly<Record<string, { readonly schema?: Schema }>>;
type Parameter = {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
};
type Operation = {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
};

const METHODS = ["get", "put", "post", "delete", "patch"] as const;

export function httpDocument(api: OpenApi): string {
  const referenced = <T>(value: T): T => {
    const reference = (value as { readonly $ref?: string } | undefined)?.$ref;
    if (reference === undefined) return value;
    const [kind, name] = reference.slice("#/components/".length).split("/");
    return api.components[kind!]![name!] as T;
  };
  const operations = Object.entries(api.paths).flatMap(([path, entry]) =>
    METHODS.filter((method) => method in entry).map((method) => {
      const operation = entry[method] as Operation;
      const shared = (entry["parameters"] ?? []) as readonly Parameter[];
      return { path, method, operation, parameters: [...shared, ...(operation.parameters ?? [])].map(referenced) };
    }),
  );

  /** The parameter's own description comes before the description of its schema. */
  const describedSchema = ({ schema, description }: Parameter): Schema => ({
    ...referenced(schema),
    ...(description === undefined ? {} : { description }),
  });
  const fieldsOf = (content: Content = {}): string[] =>
    Object.entries(content).flatMap(([type, { schema }], index) => {
      const { properties, required = [], description } = referenced(schema) ?? {};
      const title = index === 0 ? "Body" : "Or";
      const body = ["", `${title}: \`${type}\`${description === undefined ? "" : `, ${lowerFirst(description)}`}`];
      if (properties === undefined) return body;
      const rows = Object.entries(properties).map(([name, field]) => row(name, required.includes(name), referenced(field)));
      return [...body, "", "| field | | meaning |", "|---|---|---|", ...rows];
    });

  return [
    "# HTTP",
    "",
    `Everything that a gateway answers over HTTP, except \`/healthz\`, \`/readyz\` and \`/metrics\`. A running gateway describes the same at \`/v1/openapi.json\`, with the form of each answer. Send the token as \`Authorization: Bearer\`. An error is JSON with \`error\` (a code) and \`message\`. The length of a text is counted in UTF-16 code units, as in JavaScript. \`npm run http-doc\` generates this page.`,
    ...(api.tags ?? []).flatMap(({ name, description }) => [
      "",
      `## ${name}`,
      "",
      description,
      ...operations
        .filter(({ operation }) => operation.tags.includes(name))
        .flatMap(({ path, method, operation, parameters }) => [
          "",
          `### \`${method.toUpperCase()} ${path}\``,
          "",
          [operation.summary, operation.description]
            .filter((text) => text !== undefined)
            .map(sentence)
            .join(" "),
          ...(parameters.length === 0
            ? []
            : [
                "",
                "| parameter | | meaning |",
                "|---|---|---|",
                ...parameters.map((one) => row(one.name, one.required === true, describedSchema(one), one.in)),
              ]),
          ...fieldsOf(operation.requestBody?.content),
          "",
          "| answer | meaning |",
          "|---|---|",
          ...Object.entries(operation.responses).map(([status, answer]) => `| ${status} | ${cell(referenced(answer).description ?? "")} |`),
        ]),
    ]),
    "",
  ].join("\n");
}

function row(name: string, isRequired: boolean, { type, enum: values, default: fallback, description = "" }: Schema, place = ""): string {
  const kind = values?.map((value) => `\`${String(value)}\``).join(", ") ?? [type ?? []].flat().join(" or ");
  const facts = [kind, place, isRequired ? "required" : "", fallback === undefined ? "" : `default \`${String(fallback)}\``];
  return `| \`${name}\` | ${facts.filter((fact) => fact !== "").join(", ")} | ${cell(description)} |`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function sentence(text: string): string {
  return /[.:!?]$/.test(text) ? text : `${text}.`;
}

function lowerFirst(text: string): string {
  return `${text[0]!.toLowerCase()}${text.slice(1)}`;
}
