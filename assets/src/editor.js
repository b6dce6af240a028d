// CodeMirror 6 with Markdown, as the editor of `static/edit.js` uses it.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { markdown, markdownKeymap, markdownLanguage } from "@codemirror/lang-markdown";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, dropCursor, EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

window.codeMirror = {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  completionStatus,
  defaultKeymap,
  drawSelection,
  dropCursor,
  EditorState,
  EditorView,
  HighlightStyle,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  keymap,
  markdown,
  markdownKeymap,
  markdownLanguage,
  searchKeymap,
  syntaxHighlighting,
  tags,
};
