/** Runs before each file: files of one worker share the document, and what another file left open must not be found in it. */

document.body.replaceChildren();
history.replaceState(null, "", "/");
