/** Of `registry:5000/kube-scheduler:v1.36.2@sha256:…`; empty where the image is named without a tag. */
export function tagOf(image: string): string {
  return /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? '';
}
