// The theme's search is a dialog without a name; readers of a screen are told what it is.
for (const dialog of document.querySelectorAll(".md-search[role=dialog]")) {
  dialog.setAttribute("aria-label", "Search");
}
