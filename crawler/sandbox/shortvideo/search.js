(() => {
  const state = JSON.parse(document.getElementById("__UNIVERSAL_DATA_FOR_REHYDRATION__").textContent);
  const context = state["__DEFAULT_SCOPE__"]["webapp.app-context"];
  const main = document.querySelector("main");
  const keyword = new URLSearchParams(location.search).get("q");
  let offset = 0, more = true, busy = false, searchId = "", answers = 0;

  const sign = (text) => {
    let hash = 0x811c9dc5;
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
    }
    return hash.toString(16).padStart(8, "0");
  };
  const dialog = (kind, text, inset, onClose) => {
    const frame = document.createElement("div"), box = document.createElement("div");
    frame.setAttribute("role", "dialog");
    frame.style.cssText = `position:fixed;inset:${inset};background:#fff;z-index:9`;
    box.id = { captcha: "tiktok-verify-ele", login: "loginContainer" }[kind] ?? kind;
    box.textContent = text;
    frame.append(box);
    if (onClose) {
      const button = document.createElement("button");
      button.dataset.e2e = "modal-close-inner-button";
      button.ariaLabel = "Close";
      button.textContent = "\u00d7";
      button.addEventListener("click", () => {
        fetch(`/clicked?${new URLSearchParams({ q: keyword, kind })}`);
        frame.remove();
        onClose();
      });
      (kind === "captcha" ? box : frame).append(button);
    }
    document.body.append(frame);
  };
  let covered = false, closed = false;
  const showOverlay = () => {
    const overlay = context.overlay;
    if (covered) return true;
    if (!overlay || overlay.kind === "mount" || answers < overlay.after || (closed && !overlay.returns)) return false;
    covered = true;
    const onClose = () => { covered = false; closed = true; };
    if (overlay.others && !closed) {
      dialog("consent", "We use cookies", "92% 0 0 0", () => {});
      dialog("age-gate", "Are you over 18?", "0 0 92% 0", () => {});
    }
    if (overlay.kind.endsWith("login")) {
      dialog("login", "Log in to see more", "10% 25%", overlay.closable && onClose);
    }
    if (overlay.kind.startsWith("captcha")) dialog("captcha", "Drag the puzzle piece into place", "10% 25%", onClose);
    return true;
  };
  const show = (rows) => {
    for (const row of rows) {
      const card = document.createElement("article");
      const picture = document.createElement("img");
      picture.src = `/static/media/${row.id}.gif`;
      card.append(picture, row.desc ?? "");
      main.append(card);
    }
  };
  const load = async () => {
    const inFlight = context.overlay?.in_flight;
    if (busy || !more || (!inFlight && showOverlay()) || (inFlight && answers)) return;
    busy = true;
    const query = new URLSearchParams({
      aid: "1988", app_name: "tiktok_web", channel: "tiktok_web", device_platform: "web_pc", from_page: "search",
      keyword, offset, count: "12", search_id: searchId, msToken: context.nonce,
      "X-Bogus": sign([context.nonce, keyword, offset, navigator.userAgent].join("|")),
    });
    try {
      const call = fetch(`${context.path}?${query}`);
      if (inFlight) showOverlay();
      const answer = await (await call).json();
      answers += 1;
      searchId ||= answer.log_pb?.impr_id ?? "";
      more = Boolean(answer.has_more);
      offset = answer.cursor ?? offset;
      show(answer.item_list ?? []);
      showOverlay();
    } catch { more = false; }
    busy = false;
    if (main.scrollHeight <= main.clientHeight) load();
  };
  main.addEventListener("scroll", () => {
    if (main.scrollTop + main.clientHeight >= main.scrollHeight - 400) load();
  });
  if (context.overlay?.kind === "mount") {
    const mount = document.createElement("div");
    mount.id = "tiktok-verify-ele";
    document.body.append(mount);
  }
  load();
})();
