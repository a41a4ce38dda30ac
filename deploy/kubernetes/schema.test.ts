/** Every document matches the Kubernetes API: the compiler finds unknown, missing and wrongly typed fields. */

import { expect, test } from "vitest";

import { manifests, type PodSpec } from "./manifests.ts";
import { complaintsAbout } from "./schema.ts";

const documents = manifests.map((manifest) => ({ ...manifest, file: undefined }));

test("[KUB1] every document matches the Kubernetes API", () => {
  expect(documents.length).toBeGreaterThan(30);
  expect(complaintsAbout(documents)).toEqual([]);
});

test("[KUB2] the check finds a misspelt, wrongly typed or missing field", () => {
  const [gateway] = documents.filter(({ kind, metadata }) => kind === "Deployment" && metadata.name === "gateway");
  const [container] = gateway!.spec.template.spec.containers;
  const wrongs = [{ readinesProbe: container.readinessProbe }, { args: "start" }, { name: undefined }];
  const misspelt = wrongs.map((wrong) => {
    const { spec } = gateway!.spec.template;
    const template = {
      ...gateway!.spec.template,
      spec: { ...spec, containers: [{ ...container, ...wrong }] as unknown as PodSpec["containers"] },
    };
    return { ...gateway!, spec: { ...gateway!.spec, template } };
  });
  const found = complaintsAbout(misspelt).map((line) => /^(?<at>\d+)-.*error TS/.exec(line)?.groups?.["at"]);
  expect([...new Set(found)]).toEqual(["0", "1", "2"]);
});
