"use strict";
// The editor in place of the text field, drafts, saving without leaving, and the preview.
const PREVIEW_WAIT_MS = 300; // after a letter, because the next one often follows

{
  const form = document.getElementById("editor");
  if (form) startEditing(form);
}

function startEditing(form) {
  const base = document.documentElement.dataset.root;
  const field = form.elements.text;
  const hash = form.elements.if_sha256; // a new note has none
  const status = document.getElementById("editor-status");
  const preview = document.getElementById("preview");
  const cancelLink = document.getElementById("cancel");
  document.getElementById("editor-keys").hidden = false;
  const draftKey = `draft:${base}:${form.dataset.draft}`;
  let savedText = field.value;
  let editor = null; // the CodeMirror view, once it is loaded
  let isLeaving = false; // the browser does not ask whether to leave then

  const isChanged = () => field.value !== savedText;
  // A merge after a conflict must be saved, even if nothing is typed.
  const isUnsaved = () => isChanged() || "merge" in form.dataset;
  const showStatus = (...parts) => status.replaceChildren(...parts);

  // --- drafts: what was typed outlives a closed tab and the end of a session

  function storeDraft() {
    try {
      if (isUnsaved()) localStorage.setItem(draftKey, JSON.stringify(currentDraft()));
      else localStorage.removeItem(draftKey);
    } catch {
      // The storage is full or forbidden: the text is still in the form.
    }
  }

  // `hash` is that of the text that the draft is based on: if the note has changed since, saving merges.
  function currentDraft() {
    return { text: field.value, hash: hash?.value ?? "", fields: otherFields() };
  }

  function otherFields() {
    const names = ["title", "folder", "template"].filter((name) => form.elements[name]);
    return Object.fromEntries(names.map((name) => [name, form.elements[name].value]));
  }

  function readDraft() {
    try {
      return JSON.parse(localStorage.getItem(draftKey));
    } catch {
      return null;
    }
  }

  function removeDraft() {
    try {
      localStorage.removeItem(draftKey);
    } catch {
      // Without storage, there is no draft.
    }
  }

  function restoreDraft() {
    const draft = readDraft();
    if (!draft || "merge" in form.dataset) return;
    if (draft.text === field.value) return removeDraft();
    const original = currentDraft();
    fill(draft);
    const discard = document.createElement("button");
    discard.type = "button";
    discard.textContent = "Discard it";
    discard.addEventListener("click", () => {
      removeDraft();
      fill(original);
      savedText = field.value;
      showStatus("Discarded.");
    });
    showStatus("Your unsaved text was restored. ", discard);
  }

  function fill({ text, hash: textHash, fields }) {
    setText(text);
    if (hash && textHash) hash.value = textHash;
    for (const [name, value] of Object.entries(fields)) {
      if (form.elements[name]) form.elements[name].value = value;
    }
  }

  function setText(text) {
    field.value = text;
    editor?.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }

  // --- saving

  async function save({ leaveAfter }) {
    if (!form.reportValidity()) return;
    const isNew = !hash;
    if (!isNew && !isUnsaved()) return leaveAfter ? goBack() : showStatus("Nothing to save.");

    showStatus("Saving…");
    storeDraft();
    const sentText = field.value; // more may be typed before the answer
    const answer = await sendForm();
    if (!answer) return showStatus("The server cannot be reached. Your text is kept in this browser.");
    if (answer.status === 401) return showSignedOut();
    // A form has the page with both texts as its answer, or the one that creates the note again.
    if (!isNew && [404, 409].includes(answer.status)) return submitForm();

    const result = await answer.json();
    if (!answer.ok) return showRefusal(result);
    savedText = sentText;
    if (isNew) {
      removeDraft();
      return goTo(result.url);
    }
    hash.value = result.sha256;
    delete form.dataset.merge;
    storeDraft();
    if (leaveAfter && !result.warnings.length && !isChanged()) return goBack();
    showStatus(["Saved.", ...result.warnings].join(" "));
    cancelLink.textContent = "Back";
  }

  // Returns the answer of the server, or null if it cannot be reached.
  function sendForm() {
    const body = new URLSearchParams(new FormData(form));
    const headers = { Accept: "application/json" };
    return fetch(form.getAttribute("action"), { method: "POST", headers, body }).catch(() => null);
  }

  // `detail` is the message of the server's own refusals, for example of a text that is too long.
  function showRefusal({ message, detail, hint }) {
    const sentences = [message ?? detail, hint].filter(Boolean);
    showStatus(`Not saved: ${sentences.join(". ")}`);
  }

  function showSignedOut() {
    storeDraft();
    const link = document.createElement("a");
    link.href = location.pathname;
    link.textContent = "Sign in again";
    showStatus("Your session has ended. Your text is kept in this browser. ", link);
  }

  function submitForm() {
    storeDraft();
    isLeaving = true;
    form.submit();
  }

  // --- leaving

  function goBack() {
    goTo(form.dataset.leave);
  }

  function goTo(path) {
    isLeaving = true;
    location.href = path;
  }

  function askAndLeave() {
    if (isChanged() && !confirm("Leave without saving? Your text is kept in this browser.")) return;
    goBack();
  }

  addEventListener("beforeunload", (event) => {
    if (!isLeaving && isChanged()) event.preventDefault();
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter?.value === "preview") togglePreview();
    else save({ leaveAfter: true });
  });

  // On the page of a conflict, this link keeps the note as it is, and so gives up the draft.
  for (const link of document.querySelectorAll(`.versions a[href="${CSS.escape(form.dataset.leave)}"]`)) {
    link.addEventListener("click", removeDraft);
  }

  // Before the editor, in which the keys begin a new line.
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      if (!event.target.closest?.("#editor")) return;
      event.preventDefault();
      event.stopPropagation();
      save({ leaveAfter: true });
    },
    { capture: true },
  );

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      save({ leaveAfter: false });
    } else if (event.key === "Escape" && !event.defaultPrevented && event.target.closest?.("#editor")) {
      event.preventDefault();
      askAndLeave();
    }
  });

  // --- the preview

  let previewTimer = 0;

  function togglePreview() {
    preview.hidden = !preview.hidden;
    if (preview.hidden) return;
    showPreview().then(scrollToPreview);
  }

  // The buttons are directly above the preview, and stay in view below the header.
  function scrollToPreview() {
    const header = document.querySelector("body > header");
    const bar = form.querySelector(".bar");
    preview.style.scrollMarginTop = `${header.offsetHeight + bar.offsetHeight}px`;
    preview.scrollIntoView();
  }

  async function showPreview() {
    const answer = await fetch(`${base}/preview`, {
      method: "POST",
      headers: { Accept: "text/html" },
      body: new URLSearchParams({ name: form.dataset.draft, text: field.value }),
    }).catch(() => null);
    if (answer?.ok) preview.innerHTML = await answer.text(); // the server escapes all that a note contains
  }

  function onTextChanged() {
    storeDraft();
    cancelLink.textContent = "Cancel";
    if (preview.hidden) return;
    clearTimeout(previewTimer);
    previewTimer = setTimeout(showPreview, PREVIEW_WAIT_MS);
  }

  field.addEventListener("input", onTextChanged);

  // --- the editor

  async function complete(kind, typed, signal) {
    const answer = await fetch(`${base}/complete/${kind}?q=${encodeURIComponent(typed)}`, { headers: { Accept: "application/json" }, signal });
    return answer.ok ? answer.json() : [];
  }

  // The form of a new note has a few folders; the ones that match what is typed replace them.
  const folderField = document.getElementById("folder");
  folderField?.addEventListener("input", async () => {
    const typed = folderField.value;
    const folders = await complete("folders", typed);
    if (typed !== folderField.value) return; // more was typed meanwhile
    const options = folders.map((folder) => {
      const option = document.createElement("option");
      option.value = folder;
      return option;
    });
    folderField.list.replaceChildren(...options);
  });

  async function completeLink(context) {
    const typed = context.matchBefore(/\[\[[^[\]|\n]*$/);
    if (!typed) return null;

    const choices = await complete("notes", typed.text.slice(2));
    const hasEnd = context.state.sliceDoc(context.pos, context.pos + 2) === "]]";
    return {
      from: typed.from + 2,
      filter: false, // the server has chosen them, also by aliases and similar names
      options: choices.map(({ label, link, name }) => ({
        label,
        detail: name === label ? "" : name,
        apply: (view, _choice, from, to) => {
          const insert = `${link}]]`;
          view.dispatch({ changes: { from, to: hasEnd ? to + 2 : to, insert }, selection: { anchor: from + insert.length } });
        },
      })),
    };
  }

  async function completeTag(context) {
    const typed = context.matchBefore(/(?:^|\s)#[\w/-]+$/);
    if (!typed) return null;
    const mark = typed.text.indexOf("#");
    const tags = await complete("tags", typed.text.slice(mark + 1));
    return { from: typed.from + mark + 1, filter: false, options: tags.map((tag) => ({ label: tag })) };
  }

  function highlighting({ HighlightStyle, tags }) {
    return HighlightStyle.define([
      { tag: tags.heading, fontWeight: "650" },
      { tag: tags.heading1, fontWeight: "650", fontSize: "1.25em" },
      { tag: tags.strong, fontWeight: "650" },
      { tag: tags.emphasis, fontStyle: "italic" },
      { tag: tags.strikethrough, textDecoration: "line-through" },
      { tag: [tags.link, tags.url], color: "var(--accent)" },
      { tag: tags.monospace, backgroundColor: "var(--wash)" },
      { tag: [tags.quote, tags.processingInstruction, tags.meta, tags.contentSeparator, tags.labelName], color: "var(--soft)" },
    ]);
  }

  function theme({ EditorView }) {
    return EditorView.theme({
      "&": { color: "var(--ink)", backgroundColor: "var(--card)", fontSize: ".9375rem", maxHeight: "75vh", minHeight: "40vh" },
      "&.cm-focused": { outline: "none" },
      ".cm-scroller": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", lineHeight: "1.6", overflow: "auto" },
      ".cm-content": { padding: "12px 10px", caretColor: "var(--ink)", minHeight: "40vh" },
      ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
      "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
        background: "color-mix(in srgb, var(--accent) 28%, transparent)",
      },
      ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "8px" },
      ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", fontFamily: "system-ui, sans-serif" },
      ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--wash)", color: "var(--ink)" },
      ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal" },
      ".cm-panels": { backgroundColor: "var(--card)", color: "var(--ink)" },
      ".cm-textfield": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)" },
      ".cm-button": { backgroundImage: "none", backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)" },
      ".cm-searchMatch, .cm-selectionMatch": { backgroundColor: "var(--wash)" },
    });
  }

  // What is typed first belongs to the text, not to the properties before it.
  function startOfText(text) {
    const properties = text.match(/^---\r?\n[^]*?\n---[ \t]*(?:\r?\n|$)\s*/);
    return properties ? properties[0].length : 0;
  }

  // Returns where the line begins that the address names by its first words; -1 for none.
  function startOfNamedLine(text) {
    const words = new URLSearchParams(location.search).get("line");
    if (!words) return -1;
    return `\n${text}`.indexOf(`\n${words}`); // the added line end makes up for the one before the line
  }

  function openEditor(cm) {
    const namedLine = startOfNamedLine(field.value);

    // In a shadow root, CodeMirror adopts its style sheets, which the policy of the page allows. In the document it
    // would add a style element, which the policy forbids.
    const host = document.createElement("div");
    host.id = "code";
    const shadow = host.attachShadow({ mode: "open" });
    field.before(host);

    editor = new cm.EditorView({
      root: shadow,
      parent: shadow,
      doc: field.value,
      selection: { anchor: namedLine < 0 ? startOfText(field.value) : namedLine },
      extensions: [
        cm.highlightSpecialChars(),
        cm.history(),
        cm.drawSelection(),
        cm.dropCursor(),
        cm.closeBrackets(),
        cm.highlightSelectionMatches(),
        cm.EditorView.lineWrapping,
        cm.markdown({ base: cm.markdownLanguage }),
        cm.syntaxHighlighting(highlighting(cm)),
        cm.autocompletion({ override: [completeLink, completeTag], icons: false }),
        cm.keymap.of([...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.markdownKeymap, ...cm.searchKeymap, ...cm.historyKeymap, ...cm.defaultKeymap]),
        cm.EditorView.contentAttributes.of({ "aria-label": "Text in Markdown", spellcheck: "true" }),
        cm.EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          field.value = update.state.doc.toString();
          onTextChanged();
        }),
        theme(cm),
      ],
    });
    field.hidden = true;
    document.querySelector("label[for=text]").addEventListener("click", () => editor.focus());
    if (document.activeElement === document.body || document.activeElement === field) editor.focus();
    if (namedLine >= 0) editor.dispatch({ effects: cm.EditorView.scrollIntoView(namedLine, { y: "center" }) });
  }

  function loadEditor() {
    const script = document.createElement("script");
    script.src = form.dataset.editor;
    script.addEventListener("load", () => openEditor(window.codeMirror));
    document.head.append(script); // if it cannot be loaded, the text field stays
  }

  restoreDraft();
  loadEditor();
}
