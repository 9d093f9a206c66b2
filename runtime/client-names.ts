import type { PeerCertificate } from 'node:tls';

/**
 * By common name, DNS name or URI. The CA alone proves too little: a cluster's CA issues certificates to every kubelet
 * and to users.
 */
export function hasAllowedName(certificate: PeerCertificate, allowed: ReadonlySet<string>): boolean {
  const { CN } = certificate.subject ?? {};
  const names = [...(Array.isArray(CN) ? CN : [CN]), ...alternativeNames(certificate.subjectaltname)];
  return names.some((name) => name !== undefined && allowed.has(name));
}

/** Only plain entries: Node.js quotes a name that holds a comma, and no allowed name has one. */
function alternativeNames(text = ''): string[] {
  if (text.includes('"')) return [];
  return text.split(', ').flatMap((entry) => {
    const [kind = '', ...name] = entry.split(':');
    return kind === 'DNS' || kind === 'URI' ? [name.join(':')] : [];
  });
}

/** Parses `a, b` into a set; empty text is an empty set. */
export function parseNames(text: string): ReadonlySet<string> {
  return new Set(
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );
}
