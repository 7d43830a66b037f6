"""What a page's tags owe to whoever hears it, or has no mouse."""

from __future__ import annotations

from tests.chromium import Page

# Rules of WCAG 2.2 and of ARIA 1.2 that can be told from the tags: 1.3.1, 2.1.1, 2.4.2, 2.4.6,
# 3.1.1, 4.1.2. Names are the browser's own.
_BROKEN = """(() => {
  const broken = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const said = (rule, element) => broken.push(`${rule}: ${element.outerHTML.slice(0, 120)}`);
  if (!document.documentElement.lang) broken.push("no language");
  if (!document.title.trim()) broken.push("no title");
  if (all("h1").length !== 1) broken.push(`${all("h1").length} first headings`);
  if (all("main").length !== 1) broken.push(`${all("main").length} main parts`);
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    if (!heading.checkVisibility()) continue;
    if (Number(heading.tagName[1]) > level + 1) said("a level of headings left out", heading);
    level = Number(heading.tagName[1]);
  }
  const ids = all("[id]").map((each) => each.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) broken.push(`twice: #${id}`);
  for (const name of ["aria-labelledby", "aria-describedby", "aria-owns", "for"])
    for (const each of all(`[${name}]`))
      for (const id of each.getAttribute(name).split(/\\s+/))
        if (!document.getElementById(id)) said(`${name} names nothing`, each);
  const parents = { tab: "tablist", treeitem: "tree, [role=group]", option: "listbox" };
  for (const [role, around] of Object.entries(parents))
    for (const each of all(`[role=${role}]`))
      if (!each.closest(around.replace(/^(\\w+)/, "[role=$1]"))) said("outside of its whole", each);
  for (const each of all("li")) if (!each.closest("ul, ol")) said("an item of no list", each);
  for (const each of all("ul > *, ol > *"))
    if (!["LI", "TEMPLATE"].includes(each.tagName)) said("no item of its list", each);
  for (const each of all("th")) if (!each.textContent.trim()) said("an empty heading", each);
  for (const each of all("[onclick], div[tabindex='0']:not([role])")) said("no role", each);
  for (const each of all("[tabindex]")) if (each.tabIndex > 0) said("an order of its own", each);
  for (const each of all("[aria-hidden=true]"))
    if (each.checkVisibility() && each.querySelector("a[href], button, input, [tabindex='0']"))
      said("hidden, and can be reached", each);
  for (const each of all("svg, img"))
    if (!each.closest("[aria-hidden=true]") && !each.getAttribute("aria-label") && !each.alt)
      said("a picture without words", each);
  return broken;
})()"""
_NAMED = {
    *("button", "link", "tab", "tabpanel", "tree", "treeitem", "searchbox", "textbox", "region"),
    *("tablist", "dialog", "image", "checkbox", "combobox"),
}


def broken(tab: Page) -> list[str]:
    """What of a page, as it is now, breaks a rule."""
    found: list[str] = tab.run(_BROKEN)
    for node in tab.send("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in _NAMED and not node.get("ignored") and not node["name"]["value"].strip():
            found.append(f"a {role} without a name")
    return found
