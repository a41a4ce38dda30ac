import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

import { kustomization } from "../kubernetes/manifests.ts";
import { chartTemplate, TEMPLATES } from "./templates.ts";

/** Written by hand. */
const OWN = ["_helpers.tpl", "NOTES.txt", "config.yaml", "ingress.yaml"];

test.each(TEMPLATES)("[HELM1] the template of $file is made from the manifest", async (template) => {
  await expect(chartTemplate(template)).toMatchFileSnapshot(`templates/${basename(template.file)}`);
});

test("[HELM2] the chart has a template for each manifest", () => {
  const made = TEMPLATES.map(({ file }) => file);
  const applied = kustomization.resources.filter((file) => !["namespace.yaml", "../nats", "ingress.yaml"].includes(file));
  expect(made.toSorted()).toEqual([...applied, "monitoring/pod-monitor.yaml"].toSorted());
  expect(readdirSync("deploy/helm/templates").toSorted()).toEqual([...OWN, ...made.map((file) => basename(file))].toSorted());
});

test("[HELM3] the chart has the version of the package", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect(parse(readFileSync("deploy/helm/Chart.yaml", "utf8"))).toMatchObject({ version, appVersion: version });
});
