/** Shows the facts as they are now: the remark in the bar and the figures in the panel. */

import { type Facts, statusRemark, type Remark, saveRemark } from "../status.ts";
import { element } from "./element.ts";

/** "Saved" waits for a pause in the typing, so that it does not flicker. Whatever else there is to say shows at once. */
const SAVED_AFTER_MS = 300;

export function statusView(): (facts: Facts) => void {
  const [showRemark, sayRemark] = [remarkView("save"), remarkSpoken("save-said")];
  const showSave = (remark: Remark): void => {
    showRemark(remark);
    sayRemark(remark);
  };
  const showStatus = remarkView("status");
  const figures = {
    seq: element("seq", HTMLElement),
    unsaved: element("unsaved", HTMLElement),
    lastSave: element("last-save", HTMLElement),
  };
  let saying: ReturnType<typeof setTimeout> | undefined;
  return (facts) => {
    const save = saveRemark(facts);
    if (save.tone === "good") saying ??= setTimeout(() => showSave(save), SAVED_AFTER_MS);
    else {
      clearTimeout(saying);
      saying = undefined;
      showSave(save);
    }
    showStatus(statusRemark(facts));
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

/** For screen readers: what is wrong and when it is over, not each keystroke that was saved. */
function remarkSpoken(id: string): (remark: Remark) => void {
  const box = element(id, HTMLElement);
  let said: Remark["tone"] | undefined;
  return ({ tone, text }) => {
    if (tone === "busy" || tone === said) return;
    said = tone;
    box.textContent = text;
  };
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
}
