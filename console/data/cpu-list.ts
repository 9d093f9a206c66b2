/** The CPUs of a list such as `0-3,8`, in its order. Ignores anything that is not a number. */
export function parseCpus(list: string): number[] {
  const cpus: number[] = [];
  if (list === '') return cpus;
  for (const part of list.split(',')) {
    const dash = part.indexOf('-');
    const first = Number(dash < 0 ? part : part.slice(0, dash));
    const last = dash < 0 ? first : Number(part.slice(dash + 1));
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu);
  }
  return cpus;
}

/** The shortest list of some CPUs: `0-3,8`. */
export function formatCpus(cpus: Iterable<number>): string {
  const sorted = [...cpus].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(at === end ? String(sorted[at]) : `${sorted[at]}-${sorted[end]}`);
    at = end + 1;
  }
  return parts.join(',');
}
