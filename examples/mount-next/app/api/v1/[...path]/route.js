import { handler } from '../../../../service.mjs';

// Next.js sets this header to the address of the socket, unless the request has one. A proxy in front of it must replace it.
const respond = (request) =>
  handler.fetch(request, { ip: request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() });

export {
  respond as DELETE,
  respond as GET,
  respond as HEAD,
  respond as OPTIONS,
  respond as PATCH,
  respond as POST,
  respond as PUT,
};
