"use strict";

// An error's doc_url is /docs#CODE: its line is there before the viewer is, which then moves it down.
function showCode() {
  const line = location.hash && document.getElementById(location.hash.slice(1));
  if (line) line.scrollIntoView();
}

window.addEventListener("hashchange", showCode);
window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  deepLinking: false, // it would take the hash for itself
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  validatorUrl: null, // nothing leaves this machine
  onComplete: () => setTimeout(showCode),
});
