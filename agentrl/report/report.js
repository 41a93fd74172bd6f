// Shows a chart's values under the pointer, at its top right; everything else works without scripts.
for (const chart of document.querySelectorAll("svg[data-scale]")) {
  const [x0, x1, left, right, y0, y1, bottom, top] = chart.dataset.scale.split(" ").map(Number);
  const shown = (value) => (chart.dataset.unit === "frac" ? `${(100 * value).toFixed(1)} %` : +value.toPrecision(3));
  const all = [...chart.querySelectorAll("polyline")].filter((line) => line.points.numberOfItems);
  const lines = all.length > 2 ? all.filter((line) => !line.classList.contains("faint")) : all;
  chart.insertAdjacentHTML("beforeend", `<path class="cursor"/><text class="end" x="${right}" y="${top - 8}"/>`);
  const [cursor, told] = [...chart.children].slice(-2);
  chart.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse()).x;
    const nearest = (line) => [...line.points].reduce((a, b) => (Math.abs(a.x - at) <= Math.abs(b.x - at) ? a : b));
    const found = lines.map((line) => [line.dataset.label, nearest(line)]);
    if (!found.length) return;
    const x = found[0][1].x;
    const values = found.map(([label, { y }]) => `${label} ${shown(y0 + ((y - bottom) / (top - bottom)) * (y1 - y0))}`);
    cursor.setAttribute("d", `M${x} ${top}V${bottom}`);
    told.textContent = `step ${Math.round(x0 + ((x - left) / (right - left)) * (x1 - x0))}: ${values.join(", ")}`;
  });
  chart.addEventListener("pointerleave", () => {
    cursor.removeAttribute("d");
    told.textContent = "";
  });
}
