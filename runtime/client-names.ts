import type { PeerCertificate } from 'node:tls';

/**
 * Whether a client's certificate has one of the allowed names. The issuing CA alone proves too little: the CA of a
 * cluster issues certificates to every kubelet and to every user with an approved signing request.
 *
 * @param allowed common names, or DNS names and URIs among the alternative names
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
