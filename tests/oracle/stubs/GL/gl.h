/* The two types that cudaGL.h takes from OpenGL's header. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
