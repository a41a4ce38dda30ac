/** Shows the facts as they are now: the remark in the bar and the figures in the panel. */

import { type Facts, statusRemark, type Remark, saveRemark } from "../status.ts";
import { element } from "./element.ts";

/** "Saved" waits for a pause in the typing, so that it does not flicker. Whatever else there is to say shows at once. */
const SAVED_AFTER_MS = 300;

export function statusView(): (facts: Facts) => void {
  const showSave = remarkView("save");
  const showStatus = remarkView("status");
  const figures = { seq: element("seq", HTMLElement), unsaved: element("unsaved", HTMLElement), lastSave: element("last-save", HTMLElement) };
  let saying: ReturnType<typeof setTimeout> | undefined;
  return (facts) => {
    const save = saveRemark(facts);
    if (save.tone === "good") saying ??= setTimeout(() => showSave(save), SAVED_AFTER_MS);
    else {
      clearTimeout(saying);
      saying = undefined;
      showSave(save);
    }
    showStatus(statusRemark(facts.status));
    figures.seq.textContent = facts.seq.toLocaleString();
    figures.unsaved.textContent = facts.unsavedEdits.toLocaleString();
    figures.lastSave.textContent = facts.lastSaveMs === undefined ? "–" : duration(facts.lastSaveMs);
  };
}

function remarkView(id: string): (remark: Remark) => void {
  const box = element(id, HTMLElement);
  const words = box.querySelector("span")!;
  return ({ tone, text }) => {
    box.dataset["tone"] = tone;
    words.textContent = text;
  };
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
}
