"use strict";

// The doc_url of an error is /docs#CODE. The viewer loads later and moves its row down, so scroll again then.
function showCode() {
  const line = location.hash && document.getElementById(location.hash.slice(1));
  if (line) line.scrollIntoView();
}

window.addEventListener("hashchange", showCode);
window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  deepLinking: false, // it would overwrite the hash
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  validatorUrl: null, // do not send the document to a validator
  onComplete: () => setTimeout(showCode),
});
