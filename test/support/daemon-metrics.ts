/** The sum of a daemon's metric over its series with these labels; 0 if there is none. */
export async function readMetric(
  probePort: number,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${probePort}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const lines = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .filter((line) => pairs.every((label) => line.includes(label)));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
