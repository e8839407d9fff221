/** The settings of the host: grouped, searched, and the important ones edited in place. */

import { explain } from "../failure";
import { make } from "../page";
import { html, nothing, render, type TemplateResult } from "../render";
import type { SettingList, SettingShown } from "../rest";
import { HOST_SETTINGS as TEXTS } from "../texts/settings";
import { ask } from "../v1";
import { parsed, shown, written } from "./settingValue";

const groupOf = (key: string) => (key.includes(".") ? (key.split(".")[0] ?? "") : "");
const ORDER = Object.keys(TEXTS.groups);
const rank = (group: string) => (ORDER.includes(group) ? ORDER.indexOf(group) : ORDER.length);

export class HostSettings {
  readonly element = make("div", "host-settings");
  private words = "";
  private onlyChanged = false;
  private editing = "";
  private trouble = "";

  constructor(private list: SettingList) {
    this.render();
  }

  private render(): void {
    const found = this.found();
    const groups = [...new Set(found.map(({ key }) => groupOf(key)))].sort((one, other) => rank(one) - rank(other));
    render(
      html`<p class="soft">${TEXTS.about(this.list.path)}</p>
        <div class="filters">
          <input type="search" aria-label=${TEXTS.search} placeholder=${TEXTS.search} @input=${(event: Event) => this.change(() => (this.words = (event.target as HTMLInputElement).value))} />
          <label class="check"><input type="checkbox" @change=${(event: Event) => this.change(() => (this.onlyChanged = (event.target as HTMLInputElement).checked))} />${TEXTS.changed}</label>
        </div>
        ${found.length === 0 ? html`<p class="soft" role="status">${TEXTS.none}</p>` : groups.map((group) => this.group(group, found.filter(({ key }) => groupOf(key) === group)))}`,
      this.element,
    );
  }

  private found(): SettingShown[] {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    return this.list.settings.filter((setting) => (!this.onlyChanged || setting.origin !== "default") && words.every((word) => `${setting.key} ${setting.about}`.toLowerCase().includes(word)));
  }

  private group(group: string, settings: SettingShown[]): TemplateResult {
    return html`<section class="setting-group"><h3>${TEXTS.groups[group] ?? group}</h3><dl>${settings.map((setting) => this.row(setting))}</dl></section>`;
  }

  private row(setting: SettingShown): TemplateResult {
    const { key, about, origin, value, editable, restart } = setting;
    const open = this.editing === key;
    return html`<div class="setting" data-key=${key}>
      <dt><code>${key}</code>${restart ? html`<span class="chip">${TEXTS.restart}</span>` : nothing}</dt>
      <dd class="setting-about">${coded(about.replace(/\s*Read at start\.?/, ""))}</dd>
      <dd class="setting-value">${open ? this.form(setting) : html`<span class=${origin === "default" ? "soft" : ""}>${shown(value)}</span>`}</dd>
      <dd class="setting-tools"><span class="soft">${TEXTS.from(origin)}</span>${open ? nothing : editable && !/^(env|flag) /.test(origin) ? html`<button type="button" class="quiet" aria-label="${TEXTS.edit} ${key}" @click=${() => this.edit(key)}>${TEXTS.edit}</button>` : editable ? nothing : html`<span class="soft">${TEXTS.inFile}</span>`}</dd>
    </div>`;
  }

  private form(setting: SettingShown): TemplateResult {
    const { form, origin } = setting;
    const save = (event: Event) => {
      event.preventDefault();
      const field = (event.target as HTMLFormElement).elements.namedItem("value") as HTMLInputElement;
      void this.save(setting, () => parsed(field.value, form));
    };
    const keys = (event: KeyboardEvent) => event.key === "Escape" && this.change(() => (this.editing = ""));
    return html`<form class="stack" @submit=${save} @keydown=${keys}>
      ${this.field(setting)}
      ${this.trouble ? html`<p class="bad" role="alert">${this.trouble}</p>` : nothing}
      <div class="answers">
        <button class="primary">${TEXTS.save}</button>
        <button type="button" @click=${() => this.change(() => (this.editing = ""))}>${TEXTS.cancel}</button>
        ${origin === "default" ? nothing : html`<button type="button" class="quiet" @click=${() => void this.save(setting, () => null)}>${TEXTS.reset}</button>`}
      </div>
    </form>`;
  }

  private field({ key, value, form, choices }: SettingShown): TemplateResult {
    const text = written(value, form);
    if (form === "boolean" || form === "choice") {
      const options = form === "boolean" ? [["true", "on"], ["false", "off"]] : choices.map((each) => [each, each]);
      return html`<select name="value" aria-label=${key}>${options.map(([each, name]) => html`<option value=${each ?? ""} ?selected=${each === text}>${name}</option>`)}</select>`;
    }
    if (form === "list" || form === "table") return html`<textarea name="value" rows="4" aria-label=${key} placeholder=${form === "list" ? TEXTS.list : TEXTS.table} .value=${text}></textarea>`;
    return html`<input name="value" aria-label=${key} inputmode=${form === "number" ? "decimal" : "text"} .value=${text} />`;
  }

  private async save({ key }: SettingShown, read: () => unknown): Promise<void> {
    try {
      const value = read();
      const saved = await ask("PATCH /settings", {}, { body: value === null ? { key } : { key, value } });
      this.list = { ...this.list, settings: this.list.settings.map((each) => (each.key === key ? { ...each, value: saved.value, origin: saved.origin } : each)) };
      [this.editing, this.trouble] = ["", ""];
    } catch (error) {
      this.trouble = explain(error);
    }
    this.render();
  }

  private change(edit: () => void): void {
    edit();
    this.render();
  }

  private edit(key: string): void {
    this.change(() => ((this.editing = key), (this.trouble = "")));
    this.element.querySelector<HTMLElement>(".setting form [name=value]")?.focus();
  }
}

/** Text between back quotes as code. */
export const coded = (text: string): TemplateResult => html`${text.split("`").map((piece, index) => (index % 2 ? html`<code>${piece}</code>` : piece))}`;
